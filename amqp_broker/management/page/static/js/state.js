// The user who is logged in, and the selected virtual host ("" for all).

import { get } from "./api.js";
import { path } from "./format.js";

const INCLUDES = {
  administrator: ["administrator"],
  monitoring: ["administrator", "monitoring"],
  policymaker: ["administrator", "policymaker"],
};

// Patterns that JavaScript reads otherwise than the broker are allowed: the broker decides.
function matches(pattern, name) {
  try {
    return new RegExp(pattern === "" ? "^$" : pattern).test(name);
  } catch {
    return true;
  }
}

export const state = {
  user: null,
  vhosts: [],
  // The user's permissions by virtual host: what the user may not do is not offered.
  permissions: {},
  vhost: sessionStorage.getItem("vhost") ?? "",

  /** Return whether the user has a tag, or another tag that includes it. */
  is(tag) {
    const tags = Array.isArray(this.user?.tags) ? this.user.tags : String(this.user?.tags ?? "").split(",");
    return INCLUDES[tag].some((one) => tags.includes(one));
  },

  async loadVhosts() {
    const [vhosts, permissions] = await Promise.all([get("/api/vhosts"), get("/_broker/permissions")]);
    this.vhosts = vhosts.map((vhost) => vhost.name).sort();
    this.permissions = permissions;
    if (this.vhost && !this.vhosts.includes(this.vhost)) this.vhost = "";
  },

  /** Return the address of a list for the selected virtual host, or for all. */
  listPath(list) {
    return this.vhost === "" ? `/api/${list}` : `/api/${list}/${path(this.vhost)}`;
  },

  /** Return whether the user may `configure`, `write` or `read` a queue or an exchange. */
  may(action, vhost, name) {
    const given = this.permissions[vhost];
    return given !== undefined && matches(given[action], name === "" ? "amq.default" : name);
  },

  /** The virtual hosts where the user may have permissions for queues and exchanges. */
  get openVhosts() {
    return this.vhosts.filter((name) => name in this.permissions);
  },

  /** The virtual host to look at where one must be chosen. */
  get newVhost() {
    return this.vhost || (this.vhosts.includes("/") ? "/" : (this.vhosts[0] ?? "/"));
  },

  /** Return a form field that selects one of some virtual hosts. */
  vhostField(options = this.vhosts) {
    const value = options.includes(this.newVhost) ? this.newVhost : options[0];
    return { name: "vhost", label: "Virtual host", type: "select", options, value };
  },
};
