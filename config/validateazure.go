package config

import (
	"encoding/base64"
	"errors"
	"net/url"
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

// azure checks that there is at most one credential, and its form. The source checks what is in the environment.
func (k *checker) azure(a *Azure) {
	k.endpoint("azure.endpoint", a.Endpoint)
	set := ""
	for _, s := range []struct{ name, value string }{
		{"account_key", a.AccountKey}, {"account_key_file", a.AccountKeyFile}, {"sas_token", a.SASToken}, {"sas_token_file", a.SASTokenFile},
	} {
		switch {
		case s.value == "":
		case set != "":
			k.problem("azure."+s.name, "is set, and so is %s", set)
		default:
			set = s.name
		}
	}
	if a.AccountKey != "" {
		if err := CheckAccountKey(a.AccountKey); err != nil {
			k.problem("azure.account_key", "%v", err)
		}
	}
	if a.SASToken != "" {
		if err := CheckSASToken(a.SASToken); err != nil {
			k.problem("azure.sas_token", "%v", err)
		}
	}
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

// isVisible reports whether a text has no white space and no characters that are not printed.
func isVisible(s string) bool {
	return isShown(s) && strings.IndexFunc(s, unicode.IsSpace) < 0
}
