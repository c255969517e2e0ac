package gcs

import (
	"fmt"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"sequins/source/objects"
)

// emulatorVariable is the variable of the environment with the address of an emulator, as Google's clients know it.
const emulatorVariable = "STORAGE_EMULATOR_HOST"

const googleServer = "https://storage.googleapis.com"

// Options configures a Source.
type Options struct {
	// URL is gs://bucket/prefix. The prefix may be empty.
	URL string

	objects.Options
}

// New returns the source described by o. It does not connect, and reads no credentials. To the server of
// STORAGE_EMULATOR_HOST, requests are sent without credentials.
func New(o Options) (*objects.Source, error) {
	host := strings.TrimSpace(os.Getenv(emulatorVariable))
	if host == "" {
		return newSource(o, googleServer, true)
	}
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	return newSource(o, host, false)
}

// newSource returns a source on a server, with application default credentials or without.
func newSource(o Options, server string, credentials bool) (*objects.Source, error) {
	bucket, root, err := objects.ParseURL(o.URL, "GOOGLE_APPLICATION_CREDENTIALS for credentials", "gs")
	if err != nil {
		return nil, fmt.Errorf("gs: %w", err)
	}
	endpoint, err := objects.ParseEndpoint(server)
	if err != nil {
		return nil, fmt.Errorf("gs: %w", err)
	}
	client := o.Client()
	s := &store{bucket: bucket, endpoint: endpoint.Scheme + "://" + endpoint.Host}
	var policies runtime.PipelineOptions
	if credentials {
		s.tokens = &tokens{http: client.HTTP(), from: "credentials that were not found"}
		policies.PerRetry = []policy.Policy{s.tokens}
	}
	options := client.Pipeline()
	options.Telemetry.Disabled = true
	s.pipeline = runtime.NewPipeline("", "", policies, &options)
	return objects.New(s, o.Options, root), nil
}
