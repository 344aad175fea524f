// Addresses of this server. It may be below a path of a reverse proxy (`playhead serve --root-path`).

const ROOT = document.querySelector("meta[name=playhead-root]")?.content ?? "";

// A path of the server, such as /run/ID, as the browser must use it.
export function rooted(path) {
  return ROOT + path;
}

// The path of this page, as the server sees it.
export function here() {
  const path = location.pathname;
  return path === ROOT || path.startsWith(`${ROOT}/`) ? path.slice(ROOT.length) || "/" : path;
}
