package servecmd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// listener is the network listener of the server, with the URL that clients use.
type listener struct {
	net.Listener
	url string // without a path
}

// listen opens a listener on the address that the flags name, with TLS if they name a certificate.
func listen(ctx context.Context, command string, s *settings) (*listener, error) {
	host, _, err := net.SplitHostPort(s.addr)
	if err != nil {
		return nil, cli.Usagef(command, "--addr %s: %v; give a host and a port, such as 127.0.0.1:7717", s.addr, err)
	}
	if (s.cert == "") != (s.key == "") {
		return nil, cli.Usagef(command, "--tls-cert and --tls-key must be given together")
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", s.addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, cli.WithFix(fmt.Errorf("listening on %s: %w", s.addr, err),
			"another program, perhaps another memctl serve, already listens on this port: choose another port with "+
				"--addr")
	}
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", s.addr, err)
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok || !addr.IP.IsLoopback() && s.cert == "" && !s.plain {
		_ = l.Close() // nothing was accepted
		err := fmt.Errorf("%w: %s is not a loopback address, and tokens and memories would be sent as plain text",
			varve.ErrInvalid, s.addr)
		return nil, cli.WithFix(err, "give --tls-cert and --tls-key, or --plain if a proxy or a tunnel encrypts")
	}
	shown := l.Addr().String()
	if addr.IP.IsUnspecified() || host == "localhost" {
		shown = net.JoinHostPort(hostShown(host), fmt.Sprint(addr.Port))
	}
	if s.cert == "" {
		return &listener{l, "http://" + shown}, nil
	}
	c := &certificate{cert: s.cert, key: s.key}
	if _, err := c.get(nil); err != nil {
		_ = l.Close() // nothing was accepted
		return nil, err
	}
	secure := tls.NewListener(l, &tls.Config{GetCertificate: c.get, MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"}})
	return &listener{secure, "https://" + shown}, nil
}

// hostShown returns the name of this server in the URL for clients: localhost if host is localhost, otherwise the name
// of this machine. The name is needed if the server listens on all addresses, or if host is localhost.
func hostShown(host string) string {
	if host == "localhost" {
		return host
	}
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return "localhost"
}

// certificate serves a TLS certificate from two files. It reads the files again when they change, because certificates
// are renewed while a server runs.
type certificate struct {
	cert, key string

	mu     sync.Mutex
	loaded *tls.Certificate
	mtime  time.Time
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.cert)
	if err == nil && c.loaded != nil && info.ModTime().Equal(c.mtime) {
		return c.loaded, nil
	}
	pair, perr := tls.LoadX509KeyPair(c.cert, c.key)
	if err == nil {
		err = perr
	}
	switch {
	case err == nil:
		c.loaded, c.mtime = &pair, info.ModTime()
	case c.loaded == nil:
		return nil, fmt.Errorf("reading the certificate %s: %w", c.cert, err)
	}
	return c.loaded, nil // while a new one is being written, the old one is used
}
