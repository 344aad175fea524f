// The comments of people on a run, and a field to write one. Knows the API; not the model.

import { button, fill, h } from "./dom.js";
import { age, day, plural } from "./format.js";

export class Comments {
  constructor(source, id) {
    this.source = source;
    this.id = id;
    this.title = h("summary", {});
    this.list = h("div", {});
    // Closed if there are none: the page is for the run.
    this.node = h("details", { class: "comments", hidden: true }, this.title, this.list);
    this.form = this.#form();
    // An older server has no comments: the run is shown all the same.
    this.done = source.embedded ? null : this.source.comments(this.id).then((told) => this.#show(told), () => {});
  }

  #show(told) {
    this.node.hidden = !told.comments.length && !told.may_comment;
    this.node.open ||= told.comments.length > 0;
    const many = told.comments.length;
    fill(this.title, many ? plural(many, "comment") : "Comment on this run");
    fill(
      this.list,
      told.comments.map((one) => this.#one(one, told.may_remove_all || (told.may_comment && one.by === told.me))),
      told.may_comment ? this.form : null,
    );
  }

  #one(comment, mayRemove) {
    return h(
      "div",
      { class: "comment" },
      h("strong", {}, comment.by),
      h("span", { class: "quiet", title: comment.at }, ` ${day(comment.at)} · ${age(comment.at, Date.now())}`),
      mayRemove
        ? button("Remove this comment", { class: "link", onclick: () => this.#remove(comment.id) }, "Remove")
        : null,
      h("p", {}, comment.text),
    );
  }

  #remove(comment) {
    this.#try(() => this.source.removeComment(this.id, comment));
  }

  #form() {
    const text = h("textarea", { rows: "2", maxlength: "16000", "aria-label": "Comment" });
    // Keys of the page, such as space for playing, must not be taken from a person who writes.
    text.addEventListener("keydown", (event) => event.stopPropagation());
    return h(
      "form",
      {
        onsubmit: (event) => {
          event.preventDefault();
          this.#send(text);
        },
      },
      text,
      h("button", {}, "Comment"),
    );
  }

  // The field is emptied at once, so that a person can write on; a comment that was refused comes back.
  async #send(text) {
    const { value } = text;
    if (!value.trim()) return;
    text.value = "";
    const isDone = await this.#try(() => this.source.comment(this.id, value));
    if (!isDone) text.value = [value, text.value].filter(Boolean).join("\n");
  }

  // One after the other: every answer has all comments, so the last one must be the newest.
  #try(work) {
    this.done = this.done.then(async () => {
      try {
        this.#show(await work());
        return true;
      } catch (error) {
        this.list.querySelector(".bad")?.remove();
        this.list.append(h("p", { class: "bad", role: "alert" }, error.message));
        return false;
      }
    });
    return this.done;
  }
}
