// Long tables have only the rows near the screen as elements. Empty rows as high as those that are left out stand for
// the rest, so that the page scrolls as if all were there.

import { h } from "./dom.js";

// Shorter tables have all their rows, and long texts take several lines there.
export const SHORT_MAX = 60;
// Rows beyond the edges of the screen, so that the next one can get the focus.
const BEYOND = 10;
const HEIGHT_PX = 34;

/** The rows of a table's body that are near the screen. `draw()` is called when others are. */
export class VirtualRows {
  constructor(body, draw) {
    this.body = body;
    this.draw = draw;
    this.height = HEIGHT_PX;
    this.gaps = [];
    let isWaiting = false;
    this.onScroll = () => {
      if (isWaiting) return;
      isWaiting = true;
      requestAnimationFrame(() => {
        isWaiting = false;
        if (body.isConnected) draw();
        else this.leave();
      });
    };
  }

  follow() {
    addEventListener("scroll", this.onScroll, { passive: true });
    addEventListener("resize", this.onScroll);
  }

  leave() {
    removeEventListener("scroll", this.onScroll);
    removeEventListener("resize", this.onScroll);
  }

  /** Forget the height of rows: the columns are about to change. */
  reset() {
    this.body.style.removeProperty("--row");
    this.height = HEIGHT_PX;
  }

  /** Make all rows as high as the highest one near the screen. Return whether the height has changed. */
  measure() {
    const heights = [...this.body.querySelectorAll("tr:not(.gap)")].map((row) => row.getBoundingClientRect().height);
    const highest = Math.max(HEIGHT_PX - 1, ...heights);
    if (Math.abs(highest - this.height) < 0.5) return false;
    this.height = highest;
    this.body.style.setProperty("--row", `${highest}px`);
    return true;
  }

  /** Return the first place near the screen, and the one after the last, of `total` rows. */
  range(total) {
    if (total <= SHORT_MAX) return [0, total];
    const top = -this.body.getBoundingClientRect().top;
    const last = Math.min(total, Math.ceil((top + innerHeight) / this.height) + BEYOND);
    const first = Math.max(0, Math.min(Math.floor(top / this.height), total) - BEYOND);
    return [first, Math.max(last, Math.min(total, first + 2 * BEYOND))];
  }

  /** Scroll so that the row at a place is in the middle of the screen. */
  reveal(place) {
    scrollBy(0, this.body.getBoundingClientRect().top + place * this.height - innerHeight / 2);
    this.draw();
  }

  /** Return the empty row that stands for `count` rows: the first, the second … of the table. */
  gap(number, count) {
    this.gaps[number] ??= h("tr", { class: "gap", "aria-hidden": "true" }, h("td", { colspan: 99 }));
    const place = this.gaps[number].firstChild;
    const height = `${count * this.height}px`;
    if (place.style.height !== height) place.style.height = height;
    return this.gaps[number];
  }
}
