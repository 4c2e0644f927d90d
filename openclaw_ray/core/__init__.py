"""Rules and the message protocol, without Ray: plain classes with an injected clock."""
