// Who is logged in, and which virtual host he looks at ("" is all of them).

import { get } from "./api.js";
import { path } from "./format.js";

const INCLUDES = {
  administrator: ["administrator"],
  monitoring: ["administrator", "monitoring"],
  policymaker: ["administrator", "policymaker"],
};

export const state = {
  user: null,
  vhosts: [],
  vhost: sessionStorage.getItem("vhost") ?? "",

  /** Whether the user has a tag, or one that includes it. */
  is(tag) {
    const tags = Array.isArray(this.user?.tags) ? this.user.tags : String(this.user?.tags ?? "").split(",");
    return INCLUDES[tag].some((one) => tags.includes(one));
  },

  async loadVhosts() {
    this.vhosts = (await get("/api/vhosts")).map((vhost) => vhost.name).sort();
    if (this.vhost && !this.vhosts.includes(this.vhost)) this.vhost = "";
  },

  /** The address of a list, of all virtual hosts or of the chosen one. */
  listPath(list) {
    return this.vhost === "" ? `/api/${list}` : `/api/${list}/${path(this.vhost)}`;
  },

  /** Where something new is to be made. */
  get newVhost() {
    return this.vhost || (this.vhosts.includes("/") ? "/" : (this.vhosts[0] ?? "/"));
  },

  /** A field to choose a virtual host with. */
  vhostField() {
    return { name: "vhost", label: "Virtual host", type: "select", options: this.vhosts, value: this.newVhost };
  },
};
