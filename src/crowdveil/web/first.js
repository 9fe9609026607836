/**
 * Asks for the page's styles and modules once something is seen: a browser that has them would be busy with them first.
 */
{
  const first = /** @type {HTMLTemplateElement} */ (document.getElementById("first"));
  const load = () => document.head.append(first.content); // the second time there is nothing left
  requestAnimationFrame(() => setTimeout(load));
  setTimeout(load, 300); // a tab that nobody looks at has no frames
}
