/** The first requests of every visit: the poll, and what it says in the language that the visitor most likely reads. */

import { languageFile, LANGUAGES, pickLanguage } from "./language.js";
import { apiAddress, askEarly, anonymously } from "./requests.js";
import { chosenLanguage } from "./store.js";

/** The poll's name is in the address: /p/NAME/ */
export function pollName() {
  return decodeURIComponent(location.pathname.match(/\/p\/([^/]+)/)?.[1] ?? "");
}

/** Languages, most wanted first. */
export const wanted = () => [
  new URLSearchParams(location.search).get("lang"),
  chosenLanguage(),
  ...navigator.languages,
];

/** The poll's languages, as the page's head has them. @type {HTMLMetaElement | null} */
const offered = document.querySelector('meta[name="languages"]');

/** The language that the page speaks, unless the poll says otherwise. */
export const likely = () => pickLanguage(offered?.content.split(",") ?? Object.keys(LANGUAGES), wanted());

const poll = `polls/${encodeURIComponent(pollName())}`;
askEarly(apiAddress(poll), anonymously());
askEarly(languageFile(likely()), { credentials: "omit" });
if (offered) askEarly(apiAddress(`${poll}/words/${encodeURIComponent(likely())}`), anonymously());
askEarly(new URL("scene/characters.svg", import.meta.url), { credentials: "omit" });
