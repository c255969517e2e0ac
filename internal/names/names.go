// Package names has the one rule for the names of databases, versions and tokens. A valid name needs no escaping in a
// URL, cannot leave its directory, and differs from the files of a source or store, which begin with a dot or an
// underscore.
package names

// Max is the maximum length of a name, in bytes: the limit of file systems.
const Max = 255

// Valid reports whether s is a valid name: letters, digits, dots, underscores and dashes, beginning with a letter or
// digit.
func Valid(s string) bool {
	if s == "" || len(s) > Max {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return true
}

// ValidDatabase reports whether s is a valid name of a database: a valid name without another meaning in a URL.
func ValidDatabase(s string) bool {
	switch s {
	case "healthz", "livez", "readyz":
		return false
	}
	return Valid(s)
}
