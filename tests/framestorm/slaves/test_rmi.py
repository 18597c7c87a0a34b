from framestorm.slaves import rmi


def test_the_way_is_told_with_its_ports_and_the_reason() -> None:
    way = rmi.described([{"rmi_port": 8001, "rmi_ssl": False}] * 2)
    assert (way["mode"], way["ssl"]) == ("Standard", False)
    assert way["ports"] == {"slaves": "8001", "controller": "8002 and 8003"}
    assert way["why"].startswith("complete rows go before speed")


def test_with_ssl_no_two_objects_share_a_port() -> None:
    way = rmi.described([{"rmi_port": 8001, "rmi_ssl": True}, {"rmi_port": 9001, "rmi_ssl": True}])
    assert way["ssl"]
    assert way["ports"] == {"slaves": "8001 and 8002, 9001 and 9002", "controller": "any"}
