// Takes the one-time token out of the address. It stands after #, so that no server and no log has seen it.

function takeToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get("link");
  if (!token) return;
  /** @type {HTMLInputElement} */ (document.getElementById("link")).value = token;
  history.replaceState(null, "", location.pathname);
  document.getElementById("by-password")?.remove();
  const button = /** @type {HTMLButtonElement} */ (document.querySelector("#by-link button"));
  button.className = "";
  button.focus();
}

takeToken();
// A link that is opened where this page is open already changes the address and loads nothing.
addEventListener("hashchange", takeToken);
