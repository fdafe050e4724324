"""Settings: keys old and new, precedence, and errors that name what is wrong and where."""

from pathlib import Path

import pytest

from fastquorum.config import QuorumConfig
from fastquorum.errors import ConfigError
from fastquorum.node.io.sources import read_settings
from fastquorum.node.settings.settings import MEANINGS, SETTINGS, variable
from fastquorum.types import Endpoint, Uuid

DIRECTORY_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def settings(arguments: dict[str, object] | None = None, file: Path | None = None, **environment: str):  # type: ignore[no-untyped-def]
    return read_settings(arguments or {}, str(file) if file else None, environment)


def test_kafka_s_and_the_kip_s_names_mean_the_same(tmp_path: Path) -> None:
    old, new = tmp_path / "old.properties", tmp_path / "new.properties"
    old.write_text(
        "broker.id=2\nquorum.voters=1@h1:9093,2@h2:9093\nquorum.fetch.timeout.ms=1500\n"
        "quorum.election.timeout.ms = 700\n"
        "quorum.election.backoff.max.ms=800\nquorum.request.timeout.ms=900\nquorum.retry.backoff.ms=30\n"
        "quorum.retry.backoff.max.ms=100\n"
    )
    new.write_text(
        "node.id=2\ncontroller.quorum.voters=1@h1:9093,2@h2:9093\n"
        "controller.quorum.fetch.timeout.ms=1500\ncontroller.quorum.election.timeout.ms=700\n"
        "controller.quorum.election.backoff.max.ms=800\ncontroller.quorum.request.timeout.ms=900\n"
        "controller.quorum.retry.backoff.ms=30\n"
    )
    read = settings(file=old)
    assert read == settings(file=new)
    assert (read.node_id, read.voters.ids) == (2, (1, 2))
    assert read.quorum == QuorumConfig(
        fetch_timeout_us=1_500_000,
        fetch_wait_us_max=375_000,
        election_timeout_us=700_000,
        election_backoff_us_max=800_000,
        request_timeout_us=900_000,
        retry_backoff_us=30_000,
    )


def test_listeners_directories_and_servers(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "log.dirs=/data\nlisteners=PLAINTEXT://:9092,CONTROLLER://:9093\nadvertised.listeners=CONTROLLER://h1:9093\n"
        "controller.quorum.bootstrap.servers=h1:9093,[::1]:9094\n"
    )
    read = settings(file=file)
    assert read.path == "/data"
    assert read.listen == Endpoint("CONTROLLER", "", 9093)
    assert read.advertise == Endpoint("CONTROLLER", "h1", 9093)
    assert read.bootstrap == (Endpoint("CONTROLLER", "h1", 9093), Endpoint("CONTROLLER", "::1", 9094))


def test_toml_with_tables_and_numbers(tmp_path: Path) -> None:
    file = tmp_path / "node.toml"
    file.write_text(
        'node.id = 3\n[quorum]\nvoters = ["3@h3:1", "4@h4:2"]\nfetch.timeout.ms = 900\n[log]\ndirs = "/d"\n'
    )
    read = settings(file=file)
    assert (read.node_id, read.voters.ids, read.quorum.fetch_timeout_us, read.path) == (3, (3, 4), 900_000, "/d")


def test_arguments_win_over_the_file_and_that_over_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "a.properties"
    file.write_text("node.id=2\nquorum.fetch.timeout.ms=2000\n")
    environment = {
        "FASTQUORUM_NODE_ID": "3",
        "FASTQUORUM_CLUSTER_ID": "c",
        "FASTQUORUM_QUORUM_FETCH_TIMEOUT_MS": "3000",
    }
    assert settings({"node_id": 1}, file, **environment).node_id == 1
    assert settings({"node_id": None}, file, **environment).node_id == 2
    assert settings(None, None, **environment).node_id == 3
    both = settings({"fetch_timeout_us": 1_000_000}, file, **environment)
    assert (both.quorum.fetch_timeout_us, both.cluster_id) == (1_000_000, "c")
    assert settings(None, file, **environment).quorum.fetch_timeout_us == 2_000_000


def test_a_controllers_patience_with_brokers_has_kafkas_name_and_kip_343s(tmp_path: Path) -> None:
    file = tmp_path / "controller.properties"
    for key in ("broker.session.timeout.ms", "controller.heartbeat.timeout.ms"):
        file.write_text(f"{key}=4000\n")
        assert settings(file=file).session_timeout_us == 4_000_000
    file.write_text("broker.session.timeout.ms=4000\ncontroller.heartbeat.timeout.ms=5000\n")
    with pytest.raises(ConfigError, match=r"contradicts broker\.session\.timeout\.ms"):
        settings(file=file)


def test_a_session_within_which_no_controller_can_be_sure_of_its_lead_is_refused() -> None:
    with pytest.raises(ConfigError, match="give at least 320000 us"):
        settings({"session_timeout_us": 319_999})
    assert settings({"session_timeout_us": 320_000}).session_timeout_us == 320_000


def test_older_brokers_are_heard_where_a_file_says_so(tmp_path: Path) -> None:
    file = tmp_path / "controller.properties"
    assert not settings().older_brokers
    file.write_text("older.brokers.enable=true\n")
    assert settings(file=file).older_brokers


def test_directory_ids_of_voters() -> None:
    voters = settings({"voters": f"1@h1:9093:{DIRECTORY_ID},2@[::1]:9094"}).voters
    assert voters.get(1).key.directory_id == Uuid.parse(DIRECTORY_ID)
    assert voters.get(2).endpoints[0].host == "::1"


def test_an_unknown_key_is_named_with_the_nearest(tmp_path: Path) -> None:
    file = tmp_path / "a.properties"
    file.write_text("controller.quorum.voter=1@h:1\n")
    with pytest.raises(ConfigError, match=r"did you mean controller\.quorum\.voters") as refused:
        settings(file=file)
    assert (refused.value.key, refused.value.source) == ("controller.quorum.voter", str(file))
    with pytest.raises(ConfigError, match="FASTQUORUM_NODE_ID"):
        settings(FASTQUORUM_NODEID="1")
    assert settings(FASTQUORUM_FAILPOINTS="", HOME="/").node_id is None


@pytest.mark.parametrize("service", ["", "0_", "METRICS_", "HEADLESS_"])
def test_what_a_platform_injects_for_a_service_of_our_name_is_passed_over(service: str) -> None:
    injected = {
        f"FASTQUORUM_{service}{name}": value
        for name, value in {
            "SERVICE_HOST": "10.0.0.1",
            "SERVICE_PORT": "9093",
            "SERVICE_PORT_RAFT_TLS": "9093",
            "PORT": "tcp://10.0.0.1:9093",
            "PORT_9093_TCP": "tcp://10.0.0.1:9093",
            "PORT_9093_TCP_PROTO": "tcp",
            "PORT_53_UDP_PORT": "53",
            "PORT_53_SCTP_ADDR": "10.0.0.1",
            "NAME": "/client/fastquorum",
            "ENV_NODE_ID": "of the linked container",
        }.items()
    }
    reported: list[str] = []
    read = read_settings({}, None, injected, lambda _, keys: reported.extend(keys))
    assert (read, reported) == (settings(), [])


def test_a_variable_that_no_setting_is_near_to_is_reported_and_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    variables = {"FASTQUORUM_IMAGE": "registry/fastquorum:1", "FASTQUORUM_NAME": "a", "FASTQUORUM_NODE_ID": "4"}
    reported: list[str] = []
    read = read_settings({}, None, variables, lambda source, keys: reported.extend((source, *keys)))
    assert (read.node_id, reported) == (4, ["environment", "FASTQUORUM_IMAGE", "FASTQUORUM_NAME"])
    assert settings(**variables) == read  # an embedding program's: logged
    assert "FASTQUORUM_IMAGE, FASTQUORUM_NAME" in caplog.text


def test_every_setting_can_be_mistyped_in_the_environment_and_is_then_refused() -> None:
    for each in SETTINGS:
        name = variable(each.keys[0])
        with pytest.raises(ConfigError, match="did you mean FASTQUORUM_") as refused:
            settings(**{name[:-2] + name[-1]: "1"})
        assert refused.value.source == "environment"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("node.id", "one"),
        ("node.id", "-1"),
        ("node.id", "５"),
        ("quorum.voters", "５@h:9093"),
        ("quorum.voters", "1@h:９０９３"),
        ("listeners", "A://h:９０９３"),
        ("node.id", "2147483648"),
        ("quorum.voters", "1@h"),
        ("quorum.voters", "1@h:0"),
        ("quorum.voters", "1@h:9093,1@g:9093"),
        ("quorum.voters", "1@h:9093:short"),
        ("quorum.fetch.timeout.ms", "0"),
        ("quorum.fetch.timeout.ms", "soon"),
        ("log.dirs", "/a,/b"),
        ("listeners", "9093"),
        ("listeners", "A://h:1,B://h:2"),
        ("controller.quorum.bootstrap.servers", "h1"),
        ("kernels", "fast"),
        ("log.kind", "both"),
        ("cluster.id", " "),
    ],
)
def test_a_bad_value_is_named(tmp_path: Path, key: str, value: str) -> None:
    file = tmp_path / "a.properties"
    file.write_text(f"{key}={value}\n")
    with pytest.raises(ConfigError) as refused:
        settings(file=file)
    assert (refused.value.key, refused.value.source) == (key, str(file))


def test_a_path_that_is_given_is_one_whatever_is_in_it() -> None:
    """Only Kafka's `log.dirs` is a list, whose parts stand between commas."""
    assert settings({"path": "/a, b/n1"}).path == "/a, b/n1"
    assert settings(FASTQUORUM_PATH="/a, b/n1").path == "/a, b/n1"
    with pytest.raises(ConfigError, match="expected one directory"):
        settings(FASTQUORUM_LOG_DIRS="/a,/b")


def test_contradictions_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.properties"
    file.write_text("node.id=1\nbroker.id=2\n")
    with pytest.raises(ConfigError, match="contradicts"):
        settings(file=file)
    file.write_text("node.id=1\nbroker.id=1\n")
    assert settings(file=file).node_id == 1
    with pytest.raises(ConfigError, match="frame"):
        settings({"batch_bytes_max": 1000, "frame_bytes_max": 100})
    with pytest.raises(ConfigError, match="fetch timeout"):
        settings({"fetch_wait_us_max": 1_000_000, "fetch_timeout_us": 1_000_000})


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.toml"):
        settings(file=tmp_path / "missing.toml")
    (tmp_path / "bad.toml").write_text("=")
    with pytest.raises(ConfigError, match="not valid"):
        settings(file=tmp_path / "bad.toml")


def test_every_field_can_be_set_by_file_and_variable() -> None:
    assert {setting.name for setting in SETTINGS if setting.is_quorum} == set(QuorumConfig.__dataclass_fields__)
    assert list(MEANINGS) == [setting.name for setting in SETTINGS]
    keys = [key for setting in SETTINGS for key in setting.keys]
    assert len(keys) == len(set(keys))
    assert variable("controller.quorum.voters") == "FASTQUORUM_CONTROLLER_QUORUM_VOTERS"


def test_a_variable_named_after_an_argument_is_read_in_the_argument_s_unit() -> None:
    assert settings(None, None, FASTQUORUM_FETCH_TIMEOUT_US="1500000").quorum.fetch_timeout_us == 1_500_000
    assert settings(None, None, FASTQUORUM_QUORUM_FETCH_TIMEOUT_MS="1500").quorum.fetch_timeout_us == 1_500_000


def test_the_idle_interval_may_be_0(tmp_path: Path) -> None:
    file = tmp_path / "a.properties"
    file.write_text("metadata.max.idle.interval.ms=0\n")
    assert settings(file=file).quorum.idle_us_max == 0
    assert settings({"idle_us_max": 0}).quorum.idle_us_max == 0
    assert settings(None, None, FASTQUORUM_METADATA_MAX_IDLE_INTERVAL_MS="30").quorum.idle_us_max == 30_000
    file.write_text("metadata.max.idle.interval.ms=-1\n")
    with pytest.raises(ConfigError, match="0 or above"):
        settings(file=file)
