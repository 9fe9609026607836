// Buttons that copy what stands beside them, where the browser lets a page do so.

if (navigator.clipboard) {
  for (const button of /** @type {NodeListOf<HTMLButtonElement>} */ (document.querySelectorAll("[data-copy]"))) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const words = document.getElementById(String(button.dataset.copy))?.textContent?.trim() ?? "";
      await navigator.clipboard.writeText(words);
      button.textContent = "Copied";
    });
  }
}
