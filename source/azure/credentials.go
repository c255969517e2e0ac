package azure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"unicode"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"sequins/source/objects"
)

// secrets are the credentials of an account.
type secrets struct {
	key, sas          string
	from              string // for messages
	account, endpoint string // of a connection string
}

// find returns the secrets of the options, or those of the environment if they are for this account.
func (p *place) find(o *Options) (secrets, error) {
	s := secrets{key: strings.TrimSpace(o.AccountKey), sas: sasToken(o.SASToken), from: "the configuration"}
	if s.key != "" && s.sas != "" {
		return s, errors.New("account_key and sas_token: set at most one")
	}
	if s.key != "" || s.sas != "" {
		return s, s.check()
	}
	if connection := variable("AZURE_STORAGE_CONNECTION_STRING"); connection != "" {
		s, err := parseConnection(connection)
		of := cmp.Or(accountOf(s.endpoint), s.account)
		if err != nil || p.account == "" || of == "" || of == p.account {
			return s, err
		}
	}
	if account := variable("AZURE_STORAGE_ACCOUNT"); account != "" && account != p.account {
		return secrets{}, nil
	}
	if s = (secrets{key: variable("AZURE_STORAGE_KEY"), from: "AZURE_STORAGE_KEY"}); s.key == "" {
		s = secrets{sas: sasToken(variable("AZURE_STORAGE_SAS_TOKEN")), from: "AZURE_STORAGE_SAS_TOKEN"}
	}
	return s, s.check()
}

// parseConnection parses a connection string. Errors do not contain it.
func parseConnection(text string) (secrets, error) {
	settings := make(map[string]string)
	for setting := range strings.SplitSeq(text, ";") {
		name, value, _ := strings.Cut(setting, "=")
		settings[name] = value
	}
	s := secrets{from: "AZURE_STORAGE_CONNECTION_STRING", account: settings["AccountName"], endpoint: settings["BlobEndpoint"]}
	if s.key = settings["AccountKey"]; s.key == "" || s.account == "" {
		s.key, s.sas = "", sasToken(settings["SharedAccessSignature"])
	}
	switch {
	case s.endpoint == "" && s.account == "":
		return s, fmt.Errorf("%s has neither AccountName nor BlobEndpoint", s.from)
	case s.key == "" && s.sas == "":
		return s, fmt.Errorf("%s has neither AccountName with AccountKey nor SharedAccessSignature", s.from)
	case s.endpoint == "":
		s.endpoint = cmp.Or(settings["DefaultEndpointsProtocol"], "https") + "://" + s.account + ".blob." + cmp.Or(settings["EndpointSuffix"], "core.windows.net")
	}
	return s, s.check()
}

// variable returns a variable of the environment. Those of Kubernetes Secrets often end with a newline.
func variable(name string) string { return strings.TrimSpace(os.Getenv(name)) }

// sasToken returns a SAS token without white space around it and without the question mark.
func sasToken(s string) string { return strings.TrimPrefix(strings.TrimSpace(s), "?") }

// check returns an error, without the secret, if a secret has characters that none has. They would make URLs that are not valid.
func (s *secrets) check() error {
	if strings.ContainsFunc(s.key+s.sas+s.account+s.endpoint, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return fmt.Errorf("%s has white space or control characters in it", s.from)
	}
	return nil
}

// accountOf returns the account in the host of an endpoint of Azure, "" if the host does not name it, as that of another server.
func accountOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	account, domain, _ := strings.Cut(strings.ToLower(u.Hostname()), ".")
	if !strings.HasPrefix(domain, "blob.core.") && !strings.HasPrefix(domain, "dfs.core.") {
		return ""
	}
	return strings.TrimSuffix(account, "-secondary") // the copy in another region
}

// open makes the client of the container.
func (s *store) open(o *Options, conns *objects.Connections) error {
	found, err := s.find(o)
	if err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	if err := s.locate(o, &found); err != nil {
		return err
	}
	s.hidden = []string{found.key, found.sas}
	options := container.ClientOptions{ClientOptions: conns.Client().Pipeline()}
	target := s.endpoint + "/" + s.container
	switch {
	case found.key != "":
		s.asks = fmt.Sprintf("with a key of the account %s, from %s", s.account, found.from)
		var key *blob.SharedKeyCredential
		if key, err = blob.NewSharedKeyCredential(cmp.Or(found.account, s.account), found.key); err == nil {
			s.client, err = container.NewClientWithSharedKeyCredential(target, key, &options)
		}
	case found.sas != "":
		s.asks = "with a SAS token, from " + found.from
		s.client, err = container.NewClientWithNoCredential(target+"?"+found.sas, &options)
	default:
		identity := &identity{options: options.ClientOptions}
		if err = identity.renew(); err == nil {
			s.asks = "with " + identity.who
			options.PerCallPolicies = append(options.PerCallPolicies, objects.RepeatRefused(identity.refused))
			s.client, err = container.NewClient(target, identity, &options)
		}
	}
	if err != nil {
		return fmt.Errorf("credentials: %w", s.redact(err))
	}
	return nil
}

// redact returns an error without secrets and URLs that a library may have put into it.
func (s *store) redact(err error) error { return objects.Redact(err, s.hidden...) }

// identity is the credential that the environment describes. It can be made anew, because a credential of the SDK keeps a
// token that a server refuses until it expires.
type identity struct {
	options azcore.ClientOptions
	who     string // for messages

	mu      sync.Mutex
	current azcore.TokenCredential
}

// renew makes the credential anew.
func (i *identity) renew() (err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	id, file := variable("AZURE_CLIENT_ID"), os.Getenv("AZURE_FEDERATED_TOKEN_FILE")
	instances := os.Getenv("AZURE_AUTHORITY_HOST") != "" // which is trusted; public instances may be out of reach
	switch {
	case variable("AZURE_CLIENT_SECRET") != "" || os.Getenv("AZURE_CLIENT_CERTIFICATE_PATH") != "":
		i.who = "the client " + id + " of Entra, from the environment"
		i.current, err = i.client(instances)
	case file != "":
		i.who = fmt.Sprintf("the workload identity %s, from %s", id, file)
		i.current, err = azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientOptions: i.options, DisableInstanceDiscovery: instances})
	default:
		i.who = "the managed identity of this machine"
		o := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: i.options}
		if id != "" {
			i.who = "the managed identity " + id
			o.ID = azidentity.ClientID(id)
		}
		i.current, err = azidentity.NewManagedIdentityCredential(o)
	}
	return err
}

// client returns the credential of an application. A secret is read here, because the SDK sends a newline at its end, too.
func (i *identity) client(instances bool) (azcore.TokenCredential, error) {
	tenant, id, secret := variable("AZURE_TENANT_ID"), variable("AZURE_CLIENT_ID"), variable("AZURE_CLIENT_SECRET")
	if tenant == "" || id == "" || secret == "" {
		return azidentity.NewEnvironmentCredential(&azidentity.EnvironmentCredentialOptions{ClientOptions: i.options, DisableInstanceDiscovery: instances})
	}
	o := &azidentity.ClientSecretCredentialOptions{ClientOptions: i.options, DisableInstanceDiscovery: instances}
	if more := variable("AZURE_ADDITIONALLY_ALLOWED_TENANTS"); more != "" {
		o.AdditionallyAllowedTenants = strings.Split(more, ";")
	}
	return azidentity.NewClientSecretCredential(tenant, id, secret, o)
}

// GetToken implements azcore.TokenCredential.
func (i *identity) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	i.mu.Lock()
	current := i.current
	i.mu.Unlock()
	return current.GetToken(ctx, o)
}

// refused makes the credential anew after a request was refused.
func (i *identity) refused(http.Header) error { return i.renew() }
