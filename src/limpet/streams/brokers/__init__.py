"""Sources and sinks at message brokers: NATS JetStream, MQTT, Kafka."""
