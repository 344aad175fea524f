// Requests overlap, and their answers arrive in any order. This decides whether an answer may still be drawn.

export class Latest {
  // A request starts, and no older one may be drawn any more. Returns a function: may this one still be drawn?
  begin() {
    const mine = (this.current = {});
    return () => this.current === mine;
  }

  // What is shown now needed no request, or nothing is shown any more: no answer that is under way may be drawn.
  cancel() {
    this.current = null;
  }
}
