// Where queues are: in the API, and in the console.

import { encode, h, link } from "./dom.js";

export const queuePath = (channel, queue) => `channels/${encode(channel)}/queues/${queue}`;
export const queueHash = (channel, queue) => `#/queues/${encode(channel)}/${queue}`;
export const messagesHash = (channel, queue) => `${queueHash(channel, queue)}/messages`;

/** The way from the list of queues to one of them. */
export const crumbs = (channel, queue) => h("p", { class: "crumbs" }, link("#/queues", "Queues"), " / ",
  link(`#/queues?filter=${encode(`name:${channel}`)}`, channel), queue === undefined ? "" : [" / ", link(queueHash(channel, queue), queue)]);

/** A queue that a user has written as CHANNEL/NUMBER; throws what is wrong with it. */
export function readPlace(text) {
  const at = text.lastIndexOf("/");
  const number = text.slice(at + 1);
  if (at < 1 || !/^\d{1,5}$/.test(number)) throw new Error(`Write a queue as CHANNEL/NUMBER, such as orders/1, not ${text}`);
  return { channel: text.slice(0, at), queue: Number(number) };
}
