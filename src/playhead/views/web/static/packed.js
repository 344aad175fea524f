// Long texts put back where they were taken out; the inverse of `embed.Packer`. Pure.

export function unpack(value, texts) {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map((one) => unpack(one, texts));
  if (typeof value.$t === "number") return texts[value.$t];
  const members = "$q" in value ? value.$q : value;
  return Object.fromEntries(Object.entries(members).map(([name, one]) => [name, unpack(one, texts)]));
}

// A text is stored whole, or as its difference to an earlier text. Lengths count code points, as in Python.
unpack.texts = (kept) => {
  const whole = [];
  for (const one of kept) {
    if (typeof one === "string") {
      whole.push(one);
      continue;
    }
    const [base, before, after, middle] = one;
    const old = whole[base];
    if (isPlain(old)) {
      whole.push(old.slice(0, before) + middle + (after ? old.slice(-after) : ""));
    } else {
      const points = Array.from(old);
      whole.push(points.slice(0, before).join("") + middle + (after ? points.slice(-after).join("") : ""));
    }
  }
  return whole;
};

function isPlain(text) {
  return !/[\ud800-\udfff]/.test(text);
}
