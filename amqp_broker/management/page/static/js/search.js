// A field whose text is applied while the user types.

import { h } from "./dom.js";

const RESTING_MS = 150;

/** Return a search field. `apply(isEnter)` is called when the user stops typing, and at once after Enter. */
export function searchField({ apply, ...properties }) {
  let resting = null;
  return h("input", {
    type: "search",
    spellcheck: "false",
    ...properties,
    oninput: () => {
      clearTimeout(resting);
      resting = setTimeout(() => apply(false), RESTING_MS);
    },
    onkeydown: (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      clearTimeout(resting);
      apply(true);
    },
  });
}
