"""From a message to its key: bindings, scopes, identities, and the reason for each part."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw_state import Origin, Peer, Route, session_key
from openclaw_state.errors import AgentSelectionError, ConfigurationError

DM = Peer("direct", "U7")
AGENTS = {"entries": {"main": {"default": True}, "work": {}}}


def route(
    peer: Peer | None = DM, *, channel: str = "slack", scope: str | None = None, **config: Any
) -> Route:
    return session_key(Origin(channel, peer=peer), config, dm_scope=scope)


def bound(*matches: dict[str, Any], session: dict[str, Any] | None = None) -> dict[str, Any]:
    bindings = [
        {"agentId": "work", "match": {"channel": "slack"} | match, "session": session or {}}
        for match in matches
    ]
    return {"agents": AGENTS, "bindings": bindings}


def why(found: Route) -> dict[str, str]:
    return {decision.part: decision.rule for decision in found.decisions}


def test_without_configuration_every_direct_message_lands_in_main() -> None:
    found = route()
    assert (found.session_key, found.last_route_policy) == ("agent:main:main", "main")
    assert why(found) == {
        "agent": "no agents are configured",
        "dmScope": "default",
        "mainKey": "default",
        "scope": "default: stored as agent:main:main",
    }


def test_the_reasons_name_the_settings_that_decided() -> None:
    found = route(session={"dmScope": "per-peer", "identityLinks": {"Alice": ["slack:u7"]}})
    assert found.session_key == "agent:main:direct:alice"
    assert why(found)["dmScope"] == "session.dmScope"
    assert why(found)["peer"] == "session.identityLinks['Alice'] lists slack:u7"
    assert "mainKey" not in why(found)


def test_a_binding_outweighs_the_channel_and_that_the_configuration() -> None:
    config: dict[str, Any] = bound({}, session={"dmScope": "per-peer"})
    config["session"] = {"dmScope": "per-account-channel-peer"}
    by_binding = route(scope="per-channel-peer", **config)
    assert by_binding.session_key == "agent:work:direct:u7"
    assert why(by_binding)["dmScope"] == "bindings[0].session.dmScope"
    assert why(by_binding)["agent"] == "bindings[0] (binding.account)"
    by_channel = route(scope="per-channel-peer", session=config["session"])
    assert (by_channel.dm_scope, why(by_channel)["dmScope"]) == ("per-channel-peer", "the channel's own")


def test_groups_stay_apart_unless_their_scope_is_main() -> None:
    group = Peer("group", "G1")
    apart, merged = route(group), route(group, session={"groupScope": "main"})
    assert (apart.session_key, why(apart)["groupScope"]) == ("agent:main:slack:group:g1", "default")
    assert (merged.session_key, why(merged)["groupScope"]) == ("agent:main:main", "session.groupScope")


def test_global_scope_is_where_main_sessions_are_stored() -> None:
    found = route(session={"scope": "global"})
    assert (found.session_key, found.stored_key) == ("agent:main:main", "global")
    assert why(found)["scope"] == "session.scope: stored as global"
    apart = route(Peer("group", "g"), session={"scope": "global"})
    assert apart.stored_key == apart.session_key == "agent:main:slack:group:g"


@pytest.mark.parametrize("peer_id", ["", "  "])
def test_a_sender_without_id_is_unknown_and_not_main(peer_id: str) -> None:
    found = route(Peer("direct", peer_id), session={"dmScope": "per-peer"})
    assert found.session_key == "agent:main:direct:unknown"
    assert why(found)["peer"] == "the sender has no id"


@pytest.mark.parametrize(
    ("channel", "kind", "key"),
    [
        ("Signal", "group", "signal:group:AbC"),
        ("Signal", "channel", "signal:channel:abc"),
        ("Matrix", "channel", "matrix:channel:AbC"),
        ("Matrix", "group", "matrix:group:AbC"),
        ("Slack", "Room", "slack:Room:abc"),
        ("", "group", "unknown:group:abc"),
    ],
)
def test_ids_are_folded_but_for_signal_groups_and_matrix_rooms(channel: str, kind: str, key: str) -> None:
    assert route(Peer(kind, " AbC "), channel=channel).session_key == f"agent:main:{key}"


@pytest.mark.parametrize(
    ("match", "origin", "tier"),
    [
        ({"peer": {"kind": "dm", "id": "U7"}}, Origin("slack", peer=DM), "binding.peer"),
        ({"peer": {"kind": "direct", "id": "u7"}}, Origin("slack", peer=DM), "default"),
        ({"peer": {"kind": "direct", "id": 7}}, Origin("slack", peer=Peer("direct", 7)), "binding.peer"),
        ({"peer": {"kind": "room", "id": "U7"}}, Origin("slack", peer=DM), "default"),
        ({"peer": {"kind": "direct", "id": " "}}, Origin("slack", peer=DM), "default"),
        (
            {"peer": {"kind": "channel", "id": "G"}},
            Origin("slack", peer=Peer("group", "T"), parent_peer=Peer("group", "G")),
            "binding.peer.parent",
        ),
        (
            {"peer": {"kind": "group", "id": "*"}},
            Origin("slack", peer=Peer("channel", "x")),
            "binding.peer.wildcard",
        ),
        ({"peer": {"kind": "group", "id": "*"}}, Origin("slack", peer=DM), "default"),
        (
            {"guildId": "g", "roles": ["a", "b"]},
            Origin("slack", guild_id="g", member_role_ids=("b",)),
            "binding.guild+roles",
        ),
        ({"guildId": "g", "roles": ["a"]}, Origin("slack", guild_id="g"), "default"),
        ({"guildId": "g", "teamId": "t"}, Origin("slack", guild_id="g"), "default"),
        ({"guildId": "g"}, Origin("slack", guild_id="g"), "binding.guild"),
        ({"teamId": "t"}, Origin("slack", team_id="t"), "binding.team"),
        ({"roles": ["a"]}, Origin("slack", peer=DM), "default"),
        ({"roles": ["a"]}, Origin("slack", member_role_ids=("a",)), "binding.account"),
        ({"accountId": "Biz"}, Origin("slack", "biz"), "binding.account"),
        ({"accountId": "*"}, Origin("slack", "biz"), "binding.channel"),
        ({}, Origin("slack", "biz"), "default"),
        ({"channel": "SLACK"}, Origin("slack"), "binding.account"),
        ({"channel": "discord"}, Origin("slack"), "default"),
    ],
)
def test_a_binding_takes_what_its_fields_name(match: dict[str, Any], origin: Origin, tier: str) -> None:
    found = session_key(origin, bound(match))
    assert found.matched_by == tier
    assert found.agent_id == ("main" if tier == "default" else "work")


def test_the_nearer_tier_wins_and_inside_a_tier_the_order_of_the_file() -> None:
    config = bound({"accountId": "*"}, {}, {"accountId": "*", "peer": {"kind": "direct", "id": "U7"}})
    assert why(route(**config))["agent"] == "bindings[2] (binding.peer)"
    assert why(route(None, **config))["agent"] == "bindings[1] (binding.account)"


def test_a_binding_to_an_agent_that_does_not_exist_ends_the_search() -> None:
    config = bound({"peer": {"kind": "direct", "id": "U7"}}, {})
    config["bindings"][0]["agentId"] = "gone"
    with pytest.raises(AgentSelectionError, match=r"bindings\[0\] names the agent 'gone'"):
        route(**config)


def test_a_binding_to_main_holds_even_where_main_is_not_listed() -> None:
    config = bound({})
    config["agents"] = {"entries": {"work": {}, "kids": {}}}
    config["bindings"][0]["agentId"] = "Main"
    assert route(**config).agent_id == "main"


@pytest.mark.parametrize(
    ("agents", "owner"),
    [
        ({}, "main"),
        ({"list": [{"id": "Solo"}]}, "solo"),
        ({"list": [{"id": "a"}, {"id": "b", "default": True}]}, "b"),
        ({"entries": {"x": {}}, "list": [{"id": "y"}]}, "x"),
        ({"entries": {"a": {}, "b": {}}, "ownership": "explicit"}, None),
        ({"entries": {"a": {"default": True}, "b": {"default": True}}}, None),
        ({"entries": {"a": {"default": "yes"}, "b": {}}}, None),
        ({"entries": {"a": {"default": True}}, "ownership": "explicit"}, "a"),
        (
            {
                "entries": {"a": {}, "b": {}},
                "ownership": "explicit",
                "defaults": {"systemAgent": {"agentId": "gone"}},
            },
            None,
        ),
    ],
)
def test_an_unbound_message_belongs_to_the_owner(agents: dict[str, Any], owner: str | None) -> None:
    if owner is None:
        with pytest.raises(AgentSelectionError, match="does not say which agent"):
            route(agents=agents)
    else:
        assert route(agents=agents).agent_id == owner


def test_an_empty_roster_is_another_failure_than_an_undecided_one() -> None:
    with pytest.raises(ConfigurationError, match="roster is empty") as raised:
        route(agents={"entries": {}})
    assert not isinstance(raised.value, AgentSelectionError)


@pytest.mark.parametrize(
    ("session", "message"),
    [
        ({"dmScope": "per-user"}, "session.dmScope is 'per-user'"),
        ({"groupScope": 1}, "session.groupScope is 1"),
    ],
)
def test_a_scope_that_openclaw_does_not_know_is_an_error(session: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        route(session=session)


def test_of_several_identities_the_first_of_a_javascript_object_wins() -> None:
    links: dict[str, Any] = {"b": ["U7"], "": ["U7"], "c": "U7", "10": ["u7"], "9": ["other"]}
    session = {"dmScope": "per-peer", "identityLinks": links}
    assert route(session=session).session_key == "agent:main:direct:10"
    del links["10"]
    assert route(session=session).session_key == "agent:main:direct:b"


def test_people_whose_ids_differ_only_in_case_share_a_session() -> None:
    """It is so in OpenClaw; whoever asks for the route of both sees it."""
    session = {"dmScope": "per-peer"}
    upper, lower = (route(Peer("direct", one), session=session).session_key for one in ("AB", "ab"))
    assert upper == lower
