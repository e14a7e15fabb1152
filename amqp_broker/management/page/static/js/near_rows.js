// The rows of a long list that are near the screen, fetched by pages of the API.

// Rows in one request.
const CHUNK = 200;

export class NearRows {
  /** `page(number, size)` fetches a page of the API. */
  constructor(page) {
    this.page = page;
    // The rows that were near the screen since the list was asked for; unknown ones are missing.
    this.rows = [];
    this.asked = "";
    this.first = 0;
    this.last = 1;
  }

  /** Note which rows are near the screen, and return whether one is unknown. */
  move(first, last) {
    [this.first, this.last] = [first, last];
    return Array.from({ length: last - first }, (_, index) => first + index).some((place) => !(place in this.rows));
  }

  /** Fetch the rows near the screen; the first ones if `asked`, which describes the list, is another than before. */
  async load(asked, prepare) {
    const isOther = asked !== this.asked;
    const first = isOther ? 0 : Math.floor(this.first / CHUNK);
    const last = isOther ? 0 : Math.floor((Math.max(this.last, this.first + 1) - 1) / CHUNK);
    const numbers = Array.from({ length: last - first + 1 }, (_, index) => first + index + 1);
    const answers = await Promise.all(numbers.map((number) => this.page(number, CHUNK)));
    if (isOther) this.rows = [];
    this.asked = asked;
    const [{ total_count, filtered_count }] = answers;
    this.rows.length = filtered_count;
    for (const answer of answers) {
      prepare?.(answer.items, performance.now());
      answer.items.forEach((item, index) => (this.rows[(answer.page - 1) * CHUNK + index] = item));
    }
    this.rows.length = filtered_count;
    return { items: this.rows, total_count, filtered_count, page_count: 1, page: 1 };
  }
}
