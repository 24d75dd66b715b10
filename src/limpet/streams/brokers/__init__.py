"""Sources and sinks of message brokers: NATS JetStream, MQTT, Kafka."""
