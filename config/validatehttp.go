package config

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// maxOrigins limits http.allowed_origins. Each request of a page is looked up among them.
const maxOrigins = 1000

// http checks [http].
func (k *checker) http(h *HTTP) {
	if len(h.AllowedOrigins) > maxOrigins {
		k.problem("http.allowed_origins", "has %d origins, more than %d", len(h.AllowedOrigins), maxOrigins)
	}
	for _, origin := range h.AllowedOrigins {
		k.origin("http.allowed_origins", origin)
	}
	if slices.Contains(h.AllowedOrigins, "*") && len(h.AllowedOrigins) > 1 {
		k.warn("http.allowed_origins", `"*" allows all origins: the others have no effect`)
	}
	k.cacheControl("http.cache_control", h.CacheControl)
	for i, coding := range h.Compression {
		k.oneOf("http.compression", coding, Codings)
		if slices.Contains(h.Compression[:i], coding) {
			k.problem("http.compression", "%q is repeated", coding)
		}
	}
}

// origin checks an origin. Browsers send it in one form only, with which it is compared.
func (k *checker) origin(key, origin string) {
	if origin == "*" {
		return
	}
	if origin == "null" {
		k.problem(key, `"null" is the origin of sandboxed and local pages, whoever made them: it cannot be allowed alone`)
		return
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme == "" || u.Host == "" || u.User != nil || u.Opaque != "" || !isPort(u) {
		k.problem(key, "%q is not an origin such as \"https://app.example.com\", nor \"*\"", shownURL(origin))
		return
	}
	if strings.Contains(u.Host, "*") {
		k.problem(key, "%q has a *, which stands for nothing in an origin: name each origin, or all with \"*\"", origin)
		return
	}
	host, port := strings.ToLower(u.Hostname()), strings.TrimLeft(u.Port(), "0")
	if u.Scheme == "https" && port == "443" || u.Scheme == "http" && port == "80" {
		port = ""
	}
	if address, err := netip.ParseAddr(host); err == nil && address.Is6() {
		host = "[" + address.String() + "]"
	}
	if port != "" {
		port = ":" + port
	}
	if sent := u.Scheme + "://" + host + port; origin != sent {
		k.problem(key, "browsers never send %q as an origin, but %q", shownURL(origin), derived(sent))
	}
	k.header(key, origin)
}

// directive is a directive of Cache-Control without a quoted argument, which no directive of a response needs here.
var directive = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+(=[!#$%&'*+.^_`|~0-9A-Za-z-]+)?$")

// seconds are the directives whose argument is a number.
var seconds = []string{"max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"}

// cacheControl checks a Cache-Control field.
func (k *checker) cacheControl(key, field string) {
	if field == "" {
		return
	}
	for item := range strings.SplitSeq(field, ",") {
		item = strings.Trim(item, " ")
		name, value, _ := strings.Cut(strings.ToLower(item), "=")
		switch {
		case !directive.MatchString(item):
			k.problem(key, "%q is not a directive such as max-age=60; several are separated by commas", item)
		case slices.Contains(seconds, name) && (value == "" || strings.Trim(value, "0123456789") != ""):
			k.problem(key, "%s needs a number of seconds: %s=60", name, name)
		}
	}
}
