// The group of this node: who leads, how far the others are, and what that means for this page: a
// standby changes nothing, and a node that is down has others beside it. Hidden without a group.
import { on_change, request, set_lead, state } from "./api";
import type { Lead } from "./api";
import { h, replace, set_class, show } from "./dom";
import type { Child } from "./dom";
import { duration, plural } from "./format";
import { LEAST_MS, Poller } from "./live";
import type { Group, GroupMember } from "./types";

const GROUP_MS = 2000;
// A server without a group gets one only by a restart.
const ALONE_MS = 60_000;
// Older news of etcd say no more who leads.
const TRUSTED_MS = 2000;

// The same view on another node.
function link_to({ name, host, http_port }: GroupMember): HTMLElement {
  if (http_port === 0) return h("strong", {}, name);
  const shown_host = host.includes(":") ? `[${host}]` : host;
  const link = h("a", { href: "", title: `Open this page on ${name}, at ${host}` }, name);
  const aim = () => { link.href = `http://${shown_host}:${http_port}/${location.hash}`; };
  aim();
  link.addEventListener("pointerdown", aim);
  link.addEventListener("focus", aim);
  return link;
}

function links_to(members: GroupMember[]): Child[] {
  return members.flatMap((member, n) => [n ? ", " : "", link_to(member)]);
}

// What this node may do, out of its role.
function lead_of({ role }: Group): Lead {
  return role === "primary" ? "yes" : role === "taking" || role === "starting" ? "soon" : "no";
}

function words_of(group: Group, member: GroupMember): string {
  if (member.name === group.primary) return "primary";
  if (member.name === group.node && group.role === "taking") return "is taking over";
  const behind = Math.max(...group.members.map(({ lsn }) => lsn)) - member.lsn;
  if (member.starting) return `starting, ${plural(behind, "change")} behind`;
  if (behind <= 0) return "standby, up to date";
  const late = member.name === group.node && group.lag_ms > 0
    ? ` (${duration(group.lag_ms)})` : "";
  return `standby, ${plural(behind, "change")} behind${late}`;
}

// In what it differs from the primary, which clients would meet if it took over.
function difference_of({ primary, members }: Group, member: GroupMember): string | null {
  const wanted = members.find(({ name }) => name === primary)?.version ?? null;
  const { version } = member;
  const parts = [
    version !== null && wanted !== null && version !== wanted ? `version ${version}` : null,
    member.config_differs ? "other configuration" : null,
    member.users_differ ? "other users" : null].filter((part) => part !== null);
  return parts.length ? parts.join(", ") : null;
}

function shown_member(group: Group, member: GroupMember): HTMLElement {
  const own = member.name === group.node;
  const difference = difference_of(group, member);
  return h("span.member", { "data-leads": member.name === group.primary ? "" : null,
    title: `${member.host}:${member.port || member.tls_port}` },
  own ? h("strong", {}, member.name) : link_to(member), ` ${words_of(group, member)}`,
  difference === null ? null : h("span.pill.warn", {
    title: "Unlike the primary: compare CONFIG GET * and ACL LIST of both" }, difference),
  own ? h("span.pill", {}, "this page") : null);
}

function trouble_of({ node, primary, age_ms, members }: Group): string | null {
  if (age_ms > TRUSTED_MS) {
    return `etcd was last heard of ${duration(age_ms)} ago: the nodes may have changed since.`;
  }
  if (primary !== node && !members.some(({ name }) => name === primary)) {
    return "No node is the primary: nothing can be changed until one takes over.";
  }
  return members.length === 1 ? "There is no standby: nobody can take over from this node." : null;
}

// Why this page changes nothing, and where to do it; null: it does.
function notice_of(group: Group): Child[] | null {
  const { node, role, primary, members } = group;
  if (role === "primary") return null;
  if (role === "taking") return [`${node} is taking over. Changes are possible in a moment.`];
  if (role === "starting") return [`${node} is starting, and changes nothing yet.`];
  const leader = members.find(({ name }) => name === primary && name !== node);
  const where: Child[] = leader ? ["To change something, open the primary: ", link_to(leader), "."]
    : ["At the moment there is no primary."];
  return [role === "resigning" ? `${node} is handing over to another node. `
    : `${node} is a standby: it shows everything and changes nothing. `, ...where];
}

export class Nodes {
  private readonly notice = h("div.banner", { role: "status", hidden: true });
  private readonly strip = h("nav.nodes", { "aria-label": "Nodes of the group", hidden: true });
  readonly root = h("div", {}, this.strip, this.notice);
  private group: Group | null = null;
  private poller: Poller | null = null;
  private drawn = "";

  constructor() {
    on_change(() => {
      // A change was refused: who leads is known to this page too late.
      if (state.lead_doubted) this.poller?.poke();
      this.draw();
    });
  }

  // Polls while the requester may read.
  follow(may_read: boolean): void {
    if (may_read === (this.poller !== null)) return;
    this.poller?.stop();
    this.poller = may_read
      ? new Poller((signal) => this.ask(signal), GROUP_MS, LEAST_MS, () => {}, true) : null;
    if (!may_read) this.take(null);
  }

  private async ask(signal: AbortSignal): Promise<void> {
    const { group }: { group: Group | null } = await request("/api/v1/group", { signal });
    if (this.poller) this.poller.usual_ms = group === null ? ALONE_MS : GROUP_MS;
    this.take(group);
  }

  private take(group: Group | null): void {
    this.group = group;
    this.draw();
    set_lead(group === null ? "yes" : lead_of(group));
  }

  private draw(): void {
    const { group } = this;
    const lost = state.health === "disconnected";
    show(this.strip, group !== null && !lost);
    show(this.notice, group !== null && (lost ? group.members.length > 1
      : group.role !== "primary"));
    if (group === null) return;
    const trouble = trouble_of(group);
    const took = group.last_takeover_ms;
    // A link that is about to be clicked stays the same element: what is not shown, such as the age
    // of the news, changes nothing.
    const drawn = JSON.stringify([lost, trouble, took, group.role, group.primary, group.epoch,
      group.members.map((member) => [member.name, member.host, member.http_port,
        words_of(group, member), difference_of(group, member)])]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    if (lost) return this.draw_lost(group);
    set_class(this.strip, "bad", trouble !== null);
    replace(this.strip, h("span.dim", {}, "Nodes"),
      ...group.members.map((member) => shown_member(group, member)),
      trouble === null ? null : h("span.fault", { role: "alert" }, trouble),
      took > 0 && group.role === "primary"
        ? h("span.dim", {}, `${group.node} leads since takeover ${group.epoch}, which took ${
          duration(took)}`) : null);
    replace(this.notice, ...notice_of(group) ?? []);
  }

  // Where else to look, as far as is known.
  private draw_lost({ node, members }: Group): void {
    replace(this.notice, `It is ${node} of a group. Open this page on another node: `,
      ...links_to(members.filter(({ name }) => name !== node)), ".");
  }
}
