module framestorm.local/parts/faas-cli

go 1.25.0

tool github.com/openfaas/faas-cli

require (
	github.com/Azure/go-ansiterm v0.0.0-20170929234023-d6e3b3328b78 // indirect
	github.com/alexellis/go-execute v0.0.0-20191207085904-961405ea7544 // indirect
	github.com/alexellis/hmac v0.0.0-20180624210714-d5d71edd7bc7 // indirect
	github.com/docker/docker v17.12.0-ce-rc1.0.20200618181300-9dc6525e6118+incompatible // indirect
	github.com/drone/envsubst v1.0.2
	github.com/inconshreveable/mousetrap v1.0.0 // indirect
	github.com/konsorten/go-windows-terminal-sequences v1.0.3 // indirect
	github.com/mitchellh/go-homedir v1.1.0 // indirect
	github.com/morikuni/aec v1.0.0 // indirect
	github.com/openfaas/faas-cli v0.0.0-20211012083206-08e3e965c831
	github.com/openfaas/faas-provider v0.18.5 // indirect
	github.com/openfaas/faas/gateway v0.0.0-20210311210633-a6dbb4cd0285 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/ryanuber/go-glob v1.0.0 // indirect
	github.com/sirupsen/logrus v1.6.0 // indirect
	github.com/spf13/cobra v0.0.7 // indirect
	github.com/spf13/pflag v1.0.5 // indirect
	golang.org/x/sys v0.0.0-20210119212857-b64e53b001e4 // indirect
	gopkg.in/yaml.v2 v2.3.0
)
