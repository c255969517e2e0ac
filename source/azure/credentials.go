package azure

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"sequins/source/objects"
)

type secrets struct {
	key, sas string
	from     string // for messages
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
	if account := variable("AZURE_STORAGE_ACCOUNT"); account != "" && account != p.account {
		return secrets{}, nil
	}
	if s = (secrets{key: variable("AZURE_STORAGE_KEY"), from: "AZURE_STORAGE_KEY"}); s.key == "" {
		s = secrets{sas: sasToken(variable("AZURE_STORAGE_SAS_TOKEN")), from: "AZURE_STORAGE_SAS_TOKEN"}
	}
	return s, s.check()
}

// variable returns a variable of the environment. Those of Kubernetes Secrets often end with a newline.
func variable(name string) string { return strings.TrimSpace(os.Getenv(name)) }

// sasToken returns a SAS token without white space around it and without the question mark.
func sasToken(s string) string { return strings.TrimPrefix(strings.TrimSpace(s), "?") }

// check returns an error, without the secret, if a secret has characters that none has. They would make URLs that are not valid.
func (s *secrets) check() error {
	if strings.ContainsFunc(s.key+s.sas, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return fmt.Errorf("%s has white space or control characters in it", s.from)
	}
	return nil
}

// open makes the client of the container.
func (s *store) open(o *Options) error {
	found, err := s.find(o)
	if err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	s.hidden = []string{found.key, found.sas}
	options := container.ClientOptions{ClientOptions: o.Client().Pipeline()}
	target := s.endpoint + "/" + s.container
	switch {
	case found.key != "":
		s.asks = fmt.Sprintf("with a key of the account %s, from %s", s.account, found.from)
		var key *blob.SharedKeyCredential
		if key, err = blob.NewSharedKeyCredential(s.account, found.key); err == nil {
			s.client, err = container.NewClientWithSharedKeyCredential(target, key, &options)
		}
	case found.sas != "":
		s.asks = "with a SAS token, from " + found.from
		s.client, err = container.NewClientWithNoCredential(target+"?"+found.sas, &options)
	default:
		var identity azcore.TokenCredential
		var who string
		if identity, who, err = findIdentity(options.ClientOptions); err == nil {
			s.asks = "with " + who
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

// findIdentity returns the identity of Entra that the environment describes, and what it is, for messages.
func findIdentity(options azcore.ClientOptions) (identity azcore.TokenCredential, who string, err error) {
	id, file := variable("AZURE_CLIENT_ID"), os.Getenv("AZURE_FEDERATED_TOKEN_FILE")
	tenant, secret := variable("AZURE_TENANT_ID"), variable("AZURE_CLIENT_SECRET")
	instances := os.Getenv("AZURE_AUTHORITY_HOST") != "" // which is trusted; public instances may be out of reach
	switch application := "the client " + id + " of Entra, from the environment"; {
	case secret != "" && tenant != "" && id != "": // the SDK would send a newline at the end of the secret, too
		identity, err = azidentity.NewClientSecretCredential(tenant, id, secret, &azidentity.ClientSecretCredentialOptions{ClientOptions: options, DisableInstanceDiscovery: instances})
		return identity, application, err
	case secret != "" || os.Getenv("AZURE_CLIENT_CERTIFICATE_PATH") != "":
		identity, err = azidentity.NewEnvironmentCredential(&azidentity.EnvironmentCredentialOptions{ClientOptions: options, DisableInstanceDiscovery: instances})
		return identity, application, err
	case file != "":
		identity, err = azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientOptions: options, DisableInstanceDiscovery: instances})
		return identity, fmt.Sprintf("the workload identity %s, from %s", id, file), err
	}
	o, who := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: options}, "the managed identity of this machine"
	if id != "" {
		o.ID, who = azidentity.ClientID(id), "the managed identity "+id
	}
	identity, err = azidentity.NewManagedIdentityCredential(o)
	return identity, who, err
}
