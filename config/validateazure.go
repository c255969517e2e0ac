package config

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"unicode"
)

// azureForm is the form of a source in Azure.
const azureForm = "container@account.dfs.core.windows.net/path"

// azureSource checks the form of a source in Azure, which has the container where other URLs have a user.
func (k *checker) azureSource(key, v string, u *url.URL) {
	_, password := u.User.Password()
	switch {
	case password || u.RawQuery != "" || u.Fragment != "":
		k.problem(key, "has more than a container, an account and a path: keys and tokens are set in [azure]")
	case u.Host == "" || u.User != nil && u.User.Username() == "":
		k.problem(key, "%q has no container: %s://%s", v, u.Scheme, azureForm)
	}
}

// azure checks that there is at most one credential.
func (k *checker) azure(source string, a *Azure) {
	k.atLeast("azure.max_retries", int64(a.MaxRetries), 0)
	k.endpoint("azure.endpoint", a.Endpoint)
	set := ""
	for _, s := range []struct{ name, value string }{
		{"account_key", a.AccountKey}, {"account_key_file", a.AccountKeyFile}, {"sas_token", a.SASToken}, {"sas_token_file", a.SASTokenFile},
		{"connection_string", a.ConnectionString}, {"connection_string_file", a.ConnectionStringFile},
	} {
		switch {
		case s.value == "":
		case set != "":
			k.problem("azure."+s.name, "is set, and so is %s", set)
		default:
			set = s.name
		}
	}
	k.azureSecrets(a)
	k.azureAccount(source, a)
}

// azureSecrets checks the form of the credentials.
func (k *checker) azureSecrets(a *Azure) {
	for _, s := range []struct {
		name, value string
		check       func(string) error
	}{
		{"account_key", a.AccountKey, CheckAccountKey}, {"sas_token", a.SASToken, CheckSASToken}, {"connection_string", a.ConnectionString, CheckConnectionString},
	} {
		if s.value == "" {
			continue
		}
		if err := s.check(s.value); err != nil {
			k.problem("azure."+s.name, "%v", err)
		}
	}
	if a.Endpoint != "" && (a.ConnectionString != "" || a.ConnectionStringFile != "") {
		k.problem("azure.endpoint", "is set, and so is a connection string, which has the endpoint: BlobEndpoint")
	}
}

// azureAccount checks that the account of a source in Azure is known, and is that of the connection string.
func (k *checker) azureAccount(source string, a *Azure) {
	u, err := url.Parse(source)
	if err != nil || !slices.Contains(azureSchemes, u.Scheme) || u.Host == "" {
		return
	}
	account := a.Account
	if u.User != nil {
		account, _, _ = strings.Cut(u.Hostname(), ".")
	} else if account == "" {
		account = strings.TrimSpace(os.Getenv("AZURE_STORAGE_ACCOUNT"))
	}
	connected := a.ConnectionString != "" || a.ConnectionStringFile != ""
	variable := "" // the connection string of the environment, if it is used
	if !connected && a.AccountKey == "" && a.AccountKeyFile == "" && a.SASToken == "" && a.SASTokenFile == "" {
		variable = strings.TrimSpace(os.Getenv("AZURE_STORAGE_CONNECTION_STRING"))
		if otherAccount(variable, account) != "" {
			variable = ""
		}
	}
	switch {
	case variable != "" && a.Endpoint != "":
		k.problem("azure.endpoint", "is set, and so is AZURE_STORAGE_CONNECTION_STRING, which has the endpoint: BlobEndpoint")
	case account == "" && !connected && variable == "":
		k.problem("source", "does not name the account: write %s://%s, or set account in [azure] or AZURE_STORAGE_ACCOUNT", u.Scheme, azureForm)
	}
	if other := otherAccount(a.ConnectionString, account); other != "" {
		k.problem("azure.connection_string", "is for the account %q, and the source is in %q", other, account)
	}
}

// otherAccount returns the account of a connection string, by its name or its endpoint, if that is not the given account, and "" if it is
// or if one of both is not known.
func otherAccount(connection, account string) string {
	for _, of := range []string{settingOf(connection, "AccountName"), accountOf(settingOf(connection, "BlobEndpoint"))} {
		if account != "" && of != "" && of != account {
			return of
		}
	}
	return ""
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

// CheckAccountKey returns an error, which does not contain the key, if a string cannot be the key of a storage account.
func CheckAccountKey(s string) error {
	if _, err := base64.StdEncoding.DecodeString(s); err != nil || s == "" {
		return errors.New("is not base64, as the keys of storage accounts are")
	}
	return nil
}

// CheckSASToken returns an error, which does not contain the token, if a string cannot be a SAS token.
func CheckSASToken(s string) error {
	if !strings.Contains(s, "sig=") || !isVisible(s) {
		return errors.New("is not a SAS token of the form sv=…&sig=…, without white space")
	}
	return nil
}

// CheckConnectionString returns an error, which does not contain the string, if it cannot connect to a storage account.
func CheckConnectionString(s string) error {
	if !isVisible(s) {
		return errors.New("has white space, which connection strings do not have")
	}
	for setting := range strings.SplitSeq(strings.TrimRight(s, ";"), ";") {
		if !strings.Contains(setting, "=") {
			return errors.New("is not a connection string of the form AccountName=…;AccountKey=…")
		}
	}
	account, key, sas, endpoint := settingOf(s, "AccountName"), settingOf(s, "AccountKey"), settingOf(s, "SharedAccessSignature"), settingOf(s, "BlobEndpoint")
	u, err := url.Parse(endpoint)
	switch {
	case account == "" && endpoint == "":
		return errors.New("has neither AccountName nor BlobEndpoint")
	case endpoint != "" && (err != nil || !isHTTP(endpoint) || u.User != nil || u.RawQuery != ""):
		return errors.New("has a BlobEndpoint that is not a URL of the form https://host:port/path")
	case account != "" && key != "":
		if err := CheckAccountKey(key); err != nil {
			return fmt.Errorf("has an AccountKey that %w", err)
		}
	case sas == "":
		return errors.New("has neither AccountName with AccountKey nor SharedAccessSignature")
	}
	return nil
}

// settingOf returns a setting of a connection string, "" if it has none.
func settingOf(connection, name string) (value string) {
	for setting := range strings.SplitSeq(connection, ";") {
		if v, ok := strings.CutPrefix(setting, name+"="); ok {
			value = v // the last one counts
		}
	}
	return value
}

// isVisible reports whether a text has no white space and no characters that are not printed.
func isVisible(s string) bool {
	return isShown(s) && strings.IndexFunc(s, unicode.IsSpace) < 0
}
