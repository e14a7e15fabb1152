#include "load.h"

#include <stdlib.h>
#include <unistd.h>

/* Does what a short test does: connects, declares a queue of its own, publishes a message, waits for its confirm and
 * closes the connection, which deletes the queue. */
void run_session(int64_t number) {
  enum { EXCLUSIVE = 4 };
  struct peer peer;
  struct bytes bytes = {0}, list = {0};
  struct properties none = {.priority = -1};
  struct name queue = session_name(number);
  connect_peer(&peer);
  call(&peer, QUEUE_DECLARE_OK, QUEUE_DECLARE, "stbe", 0, queue.text, EXCLUSIVE);
  call(&peer, CONFIRM_SELECT_OK, CONFIRM_SELECT, "b", 0);
  put_properties(&list, &none);
  put_message(&bytes, "", queue.text, &list, NULL, options.body);
  request(&peer, &bytes, BASIC_ACK);
  run.sent++;
  run.confirmed++;
  put_method(&bytes, 0, CONNECTION_CLOSE, "stss", 200, "", 0, 0);
  request(&peer, &bytes, CONNECTION_CLOSE_OK);
  close(peer.fd);
  free(bytes.at);
  free(list.at);
  run.last_event_ns = now_ns();
}
