"""`python -m bench controllers`: our controller beside Apache Kafka's, and ZooKeeper, driven by one client of ours."""
