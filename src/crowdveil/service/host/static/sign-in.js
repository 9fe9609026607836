// Takes the one-time token out of the address. It stands after #, so that no server and no log has seen it.

const token = new URLSearchParams(location.hash.slice(1)).get("link");
if (token) {
  /** @type {HTMLInputElement} */ (document.getElementById("link")).value = token;
  history.replaceState(null, "", location.pathname);
  document.getElementById("by-password")?.remove();
  const button = /** @type {HTMLButtonElement} */ (document.querySelector("#by-link button"));
  button.className = "";
  button.focus();
}
