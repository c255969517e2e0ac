package hdfs

import "context"

// Identity implements source.Identified.
func (s *Source) Identity(context.Context) (string, error) {
	switch k := s.kerberos; {
	case k == nil:
		return "user " + s.library.User + ", without Kerberos", nil
	case k.keytab != "":
		return "Kerberos principal " + k.principal + " with the keytab " + k.keytab, nil
	default:
		return "the Kerberos credential cache " + k.cache, nil
	}
}
