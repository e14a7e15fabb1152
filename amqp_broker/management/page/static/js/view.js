// How a user wants to see a list: rows on a page, and columns. The browser keeps it.

import { dialog } from "./form.js";

// All rows on one page, of which the table has those near the screen (virtual_rows.js).
export const ALL = 0;
const SIZES = [20, 50, 100, 200, 500];
const USUAL = 100;

export class View {
  constructor(title, columns) {
    this.title = title;
    this.columns = columns.filter((column) => column.title && !column.isHead);
    const kept = this.kept();
    this.size = kept.size === ALL || SIZES.includes(kept.size) ? kept.size : USUAL;
    this.hidden = new Set(this.columns.map((column) => column.title).filter((one) => kept.hidden.includes(one)));
  }

  /** Return what the browser has kept, which another version of the page may have written. */
  kept() {
    try {
      const { size, hidden } = JSON.parse(localStorage.getItem(`view ${this.title}`));
      return { size, hidden: Array.isArray(hidden) ? hidden : [] };
    } catch {
      return { hidden: [] };
    }
  }

  /** Let the user choose, and call `changed()` then. `withoutRoom` are the titles of columns for which the page is too narrow. */
  open(changed, withoutRoom) {
    const name = (column) => `column ${column.title}`;
    dialog({
      title: `View of ${this.title}`,
      action: "Apply",
      note: withoutRoom.length ? `No room on this screen for: ${withoutRoom.join(", ")}.` : null,
      fields: [
        { name: "size", label: "Rows on a page", type: "select", options: [...SIZES, [ALL, "All"]], value: this.size, isWide: true },
        ...this.columns.map((column) => ({ name: name(column), label: column.title, type: "check", value: !this.hidden.has(column.title) })),
      ],
      submit: (values) => {
        this.size = Number(values.size);
        this.hidden = new Set(this.columns.filter((column) => !values[name(column)]).map((column) => column.title));
        localStorage.setItem(`view ${this.title}`, JSON.stringify({ size: this.size, hidden: [...this.hidden] }));
        changed();
      },
    });
  }
}
