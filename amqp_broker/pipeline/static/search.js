// Searches the tables of a report. Without scripts, they show all their rows.

const ROWS_SHOWN = 50;

/** The rows of a table that match the search: the first ones, or all. */
class Rows {
  constructor(table) {
    this.rows = [...table.tBodies[0].rows];
    this.isWhole = false;
    this.state = document.createElement("p");
    this.state.className = "note";
    this.all = document.createElement("button");
    this.all.textContent = "Show all";
    this.all.addEventListener("click", () => {
      this.isWhole = true;
      this.search(this.wanted);
    });
    this.count = document.createElement("span");
    this.state.append(this.count, " ", this.all);
    table.parentElement.after(this.state);
  }

  search(wanted) {
    this.wanted = wanted;
    this.texts ??= this.rows.map((row) => [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase());
    let found = 0;
    let visible = 0;
    this.rows.forEach((row, index) => {
      const matches = this.texts[index].includes(wanted);
      row.hidden = !matches || (!this.isWhole && found >= ROWS_SHOWN);
      found += matches;
      visible += !row.hidden;
    });
    this.state.hidden = visible === this.rows.length;
    this.all.hidden = visible === found;
    const number = (one) => one.toLocaleString("en");
    this.count.textContent = `${number(visible)} of ${number(found)}${wanted ? " matching" : ""} rows.`;
  }
}

const tables = [...document.querySelectorAll("table")].map((table) => new Rows(table));
const field = document.querySelector("input[type=search]");
const searchAll = () => tables.forEach((table) => table.search(field.value.trim().toLowerCase()));
if (field) {
  field.closest("p").hidden = false;
  field.addEventListener("input", searchAll);
  searchAll();
}
