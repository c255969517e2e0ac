package daemon

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// Sequins starts the program as a user would, from a configuration file. compression is that of blocks,
// extra more lines of the file.
func Sequins(program, cpus, source, store, compression, extra string) (*Daemon, error) {
	program, err := filepath.Abs(program)
	if err != nil {
		return nil, err
	}
	return start(cpus, Ready, func(addr, temp string) ([]string, error) {
		conf := filepath.Join(temp, "sequins.conf")
		text := fmt.Sprintf("source = %q\nbind = %q\nlocal_store = %q\nsettle = \"0s\"\n[storage]\ncompression = %q\n%s", source, addr, store, compression, extra)
		return []string{program, "--config", conf}, os.WriteFile(conf, []byte(text), 0o644)
	})
}

// Self starts this program again with other arguments, to which the address to listen on is appended.
func Self(cpus string, args ...string) (*Daemon, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return start(cpus, listening, func(addr, _ string) ([]string, error) {
		return append(append([]string{self}, args...), addr), nil
	})
}

// Redis starts a server without any persistence.
func Redis(cpus string) (*Daemon, error) {
	return start(cpus, listening, func(addr, temp string) ([]string, error) {
		_, port, err := net.SplitHostPort(addr)
		return []string{"redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", temp, "--save", "", "--appendonly", "no"}, err
	})
}

const nginxConf = `daemon off;
user root;
pid %[1]s/pid;
worker_processes 1;
error_log %[1]s/error.log crit;
events { worker_connections 1024; }
http {
	access_log off;
	keepalive_requests 1000000000;
	sendfile on;
	open_file_cache max=1000 inactive=1h;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	server {
		listen %[2]s;
		root %[1]s/root;
		location /return { return 200 '%[3]s'; }
	}
}
`

// MaxReturn is the longest body, in bytes, that Nginx answers /return with: its configuration has no longer words.
const MaxReturn = 2 << 10

// Nginx starts one worker, which answers /return from its configuration, with up to MaxReturn bytes of body, and /file from
// a file, with all of it, and does not write a log.
func Nginx(cpus string, body []byte) (*Daemon, error) {
	return start(cpus, listening, func(addr, temp string) ([]string, error) {
		conf := filepath.Join(temp, "nginx.conf")
		if err := os.MkdirAll(filepath.Join(temp, "root"), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(temp, "root", "file"), body, 0o644); err != nil {
			return nil, err
		}
		return []string{"nginx", "-c", conf, "-e", filepath.Join(temp, "error.log")}, os.WriteFile(conf, fmt.Appendf(nil, nginxConf, temp, addr, body[:min(len(body), MaxReturn)]), 0o644)
	})
}
