"""A user to whom remote backends grant permissions; each backend has to grant each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from amqp_broker.amqp.errors import AccessRefused, NotAllowed
from amqp_broker.broker.admin.access import User
from amqp_broker.broker.backends.questions import RESOURCE, TOPIC, VHOST, Answer, Answers, Backend, Question

if TYPE_CHECKING:
    from amqp_broker.broker.vhost import VHost


class RemoteUser(User):
    """A user of one connection or one HTTP request. Its checks raise Unanswered.

    `users` are the broker's own; None, unless these have to grant permissions as well. Sources of texts and questions:
    rabbit_access_control.erl and rabbit_auth_backend_http.erl.
    """

    asks = True

    def __init__(
        self,
        name: str,
        tags: Sequence[str],
        backends: Sequence[Backend],
        users: Mapping[str, User] | None,
        answers: Answers,
        peer_host: str,
    ) -> None:
        super().__init__(name, tags=tuple(tags))
        self.is_internal = users is not None
        self._backends = backends
        self._users = users
        self._answers = answers
        self._peer_host = peer_host

    def can_open(self, vhost: str) -> bool:
        return self._vhost_refusal(vhost) is None

    def require_vhost(self, vhost: str) -> None:
        refusal = self._vhost_refusal(vhost)
        if refusal is not None:
            raise NotAllowed(f"access to vhost '{vhost}' refused for user '{self.name}'{refusal}")

    def _vhost_refusal(self, vhost: str) -> str | None:
        """Return None if all backends open the vhost, else the reason, which is "" for a refusal."""
        if self._users is not None and not self._own.can_open(vhost):
            return ""
        parameters = (("username", self.name), ("vhost", vhost), ("ip", self._peer_host))
        return self._refusal(Question(VHOST, (*parameters, self._joined_tags)))

    def require(self, action: str, vhost: str, kind: str, name: str) -> None:
        if self._users is not None:
            self._own.require(action, vhost, kind, name)
        shown = name or "amq.default"
        refusal = self._refusal(self._of_resource(RESOURCE, vhost, kind, shown, action))
        if refusal is not None:
            raise AccessRefused(
                f"{action} access to {kind} '{shown}' in vhost '{vhost}' refused for user '{self.name}'{refusal}"
            )

    def may_topic(self, action: str, vhost: str, exchange: str, routing_key: str) -> bool:
        return self._topic_refusal(action, vhost, exchange, routing_key) is None

    def require_topic(self, action: str, vhost: VHost, exchange: str, routing_key: str) -> None:
        refusal = self._topic_refusal(action, vhost.name, exchange, routing_key)
        if refusal is not None:
            raise self.topic_refused(action, vhost, exchange, routing_key, refusal)

    def _topic_refusal(self, action: str, vhost: str, exchange: str, routing_key: str) -> str | None:
        if self._users is not None and not self._own.may_topic(action, vhost, exchange, routing_key):
            return ""
        question = self._of_resource(TOPIC, vhost, "topic", exchange, action)
        variables = (("variable_map.username", self.name), ("variable_map.vhost", vhost))
        return self._refusal(Question(TOPIC, (*question.parameters, ("routing_key", routing_key), *variables)))

    def _of_resource(self, question: str, vhost: str, kind: str, name: str, action: str) -> Question:
        resource = (("username", self.name), ("vhost", vhost), ("resource", kind), ("name", name))
        return Question(question, (*resource, ("permission", action), self._joined_tags))

    @property
    def _joined_tags(self) -> tuple[str, str]:
        return "tags", " ".join(self.tags)

    @property
    def _own(self) -> User:
        """The broker's own user of this name; one that was deleted has no permissions."""
        assert self._users is not None
        return self._users.get(self.name) or User(self.name)

    def _refusal(self, question: Question) -> str | None:
        """Return None if all backends allow it; "" for a refusal; or the end of a text about an error."""
        for backend in self._backends:
            answer: Answer = self._answers.of(backend, question)
            if not answer.is_allowed:
                return f", backend {backend.name} returned an error: {answer.error}" if answer.error else ""
        return None
