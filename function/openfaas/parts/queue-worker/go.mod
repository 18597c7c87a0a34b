module framestorm.local/parts/queue-worker

go 1.25.0

tool github.com/openfaas/nats-queue-worker

require (
	github.com/gogo/protobuf v1.3.2 // indirect
	github.com/nats-io/nats.go v1.11.1-0.20210623165838-4b75fc59ae30 // indirect
	github.com/nats-io/nkeys v0.3.0 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	github.com/nats-io/stan.go v0.9.0 // indirect
	github.com/openfaas/faas-provider v0.18.6 // indirect
	github.com/openfaas/nats-queue-worker v0.0.0-20210726161954-ada9a31504c9 // indirect
	golang.org/x/crypto v0.0.0-20210616213533-5ff15b29337e // indirect
)
