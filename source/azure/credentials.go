package azure

import (
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
	connection, key, sas string
	from                 string // for messages
}

// find returns the secrets of the options, or those of the environment if they are for this account.
func (p *place) find(o *Options) (secrets, error) {
	given := secrets{connection: strings.TrimSpace(o.ConnectionString), key: strings.TrimSpace(o.AccountKey), sas: sasToken(o.SASToken), from: "the configuration"}
	if given.count() > 1 {
		return secrets{}, errors.New("connection_string, account_key and sas_token: set at most one")
	}
	if given.connection != "" && o.Endpoint != "" {
		return secrets{}, errors.New("endpoint and connection_string, which has the endpoint: set one of them")
	}
	if given.count() == 1 {
		return given, p.matches(given.connection)
	}
	if connection := variable("AZURE_STORAGE_CONNECTION_STRING"); connection != "" && p.matches(connection) == nil {
		if o.Endpoint != "" {
			return secrets{}, errors.New("endpoint and AZURE_STORAGE_CONNECTION_STRING, which has the endpoint: set one of them")
		}
		return secrets{connection: connection, from: "AZURE_STORAGE_CONNECTION_STRING"}, nil
	}
	if account := variable("AZURE_STORAGE_ACCOUNT"); account != "" && account != p.account {
		return secrets{}, nil
	}
	if key := variable("AZURE_STORAGE_KEY"); key != "" {
		return secrets{key: key, from: "AZURE_STORAGE_KEY"}, nil
	}
	if sas := variable("AZURE_STORAGE_SAS_TOKEN"); sas != "" {
		return secrets{sas: sasToken(sas), from: "AZURE_STORAGE_SAS_TOKEN"}, nil
	}
	return secrets{}, nil
}

// variable returns a variable of the environment. Those of Kubernetes Secrets often end with a newline.
func variable(name string) string { return strings.TrimSpace(os.Getenv(name)) }

// sasToken returns a SAS token without white space around it and without the question mark.
func sasToken(s string) string { return strings.TrimPrefix(strings.TrimSpace(s), "?") }

// check returns an error, without the secret, if a secret has characters that none has. They would make URLs that are not valid.
func (s *secrets) check() error {
	for _, secret := range []struct{ name, value string }{{"the connection string", s.connection}, {"the key", s.key}, {"the SAS token", s.sas}} {
		if strings.ContainsFunc(secret.value, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
			return fmt.Errorf("%s, from %s, has white space or control characters in it", secret.name, s.from)
		}
	}
	return nil
}

// hidden returns the texts that no error may have.
func (s *secrets) hidden() []string {
	all := []string{s.connection, s.key, s.sas}
	for setting := range strings.SplitSeq(s.connection, ";") {
		if name, value, _ := strings.Cut(setting, "="); name == "AccountKey" || name == "SharedAccessSignature" {
			all = append(all, value)
		}
	}
	return all
}

func (s *secrets) count() (n int) {
	for _, secret := range []string{s.connection, s.key, s.sas} {
		if secret != "" {
			n++
		}
	}
	return n
}

// matches returns an error if a connection string is for another account.
func (p *place) matches(connection string) error {
	for setting := range strings.SplitSeq(connection, ";") {
		name, value, _ := strings.Cut(setting, "=")
		switch {
		case strings.EqualFold(name, "BlobEndpoint"):
			value = accountOf(value)
		case !strings.EqualFold(name, "AccountName"):
			continue
		}
		if p.account != "" && value != "" && value != p.account {
			return fmt.Errorf("connection_string is for the account %q, and the source is in %q", value, p.account)
		}
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
func (s *store) open(o *Options) error {
	found, err := s.find(o)
	if err != nil {
		return err
	}
	if err := found.check(); err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	s.hidden = found.hidden()
	options := s.clientOptions(o.MaxRetries)
	target := s.endpoint + "/" + s.container
	switch {
	case found.connection != "":
		s.asks = "with a connection string, from " + found.from
		s.client, err = container.NewClientFromConnectionString(found.connection, s.container, &container.ClientOptions{ClientOptions: options})
	case found.key != "":
		s.asks = fmt.Sprintf("with a key of the account %s, from %s", s.account, found.from)
		var key *blob.SharedKeyCredential
		if key, err = blob.NewSharedKeyCredential(s.account, found.key); err == nil {
			s.client, err = container.NewClientWithSharedKeyCredential(target, key, &container.ClientOptions{ClientOptions: options})
		}
	case found.sas != "":
		s.asks = "with a SAS token, from " + found.from
		s.client, err = container.NewClientWithNoCredential(target+"?"+found.sas, &container.ClientOptions{ClientOptions: options})
	default:
		err = s.openIdentity(target, options)
	}
	if err != nil {
		return fmt.Errorf("credentials: %w", s.redact(err))
	}
	return nil
}

// redact returns an error without secrets and URLs that a library may have put into it.
func (s *store) redact(err error) error { return objects.Redact(err, s.hidden...) }

// openIdentity makes the client with an identity of Entra.
func (s *store) openIdentity(target string, options azcore.ClientOptions) error {
	identity := &identity{options: options}
	s.asks = "with " + identity.describe()
	if err := identity.renew(); err != nil {
		return err
	}
	options.PerCallPolicies = append(options.PerCallPolicies, repeatRefused{identity})
	client, err := container.NewClient(target, identity, &container.ClientOptions{ClientOptions: options})
	s.client = client
	return err
}

// identity is the credential that the environment describes. It can be made anew, because a credential of the SDK keeps a
// token that a server refuses until it expires.
type identity struct {
	options azcore.ClientOptions

	mu      sync.Mutex
	current azcore.TokenCredential
}

// kindOf returns which kind of identity the environment describes.
func kindOf() string {
	switch {
	case variable("AZURE_CLIENT_SECRET") != "" || os.Getenv("AZURE_CLIENT_CERTIFICATE_PATH") != "":
		return "client"
	case os.Getenv("AZURE_FEDERATED_TOKEN_FILE") != "":
		return "workload"
	}
	return "managed"
}

func (i *identity) describe() string {
	id := variable("AZURE_CLIENT_ID")
	switch {
	case kindOf() == "client":
		return "the client " + id + " of Entra, from the environment"
	case kindOf() == "workload":
		return fmt.Sprintf("the workload identity %s, from %s", id, os.Getenv("AZURE_FEDERATED_TOKEN_FILE"))
	case id != "":
		return "the managed identity " + id
	}
	return "the managed identity of this machine"
}

// renew makes the credential anew.
func (i *identity) renew() (err error) {
	var made azcore.TokenCredential
	instances := os.Getenv("AZURE_AUTHORITY_HOST") != "" // which is trusted; public instances may be out of reach
	switch kindOf() {
	case "client":
		made, err = i.client(instances)
	case "workload":
		made, err = azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientOptions: i.options, DisableInstanceDiscovery: instances})
	default:
		o := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: i.options}
		if id := variable("AZURE_CLIENT_ID"); id != "" {
			o.ID = azidentity.ClientID(id)
		}
		made, err = azidentity.NewManagedIdentityCredential(o)
	}
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.current = made
	return nil
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

// repeatRefused repeats a request once that was refused with 401, with a new token.
type repeatRefused struct{ *identity }

// Do implements policy.Policy.
func (p repeatRefused) Do(req *policy.Request) (*http.Response, error) {
	resp, err := req.Next()
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	if err := errors.Join(p.renew(), resp.Body.Close(), req.RewindBody()); err != nil {
		return nil, err
	}
	return req.Next()
}
