package redis_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve/working"
	"github.com/varve-db/varve/working/redis"
)

func write(t *testing.T, dir, name, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	ok(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return path
}

func TestTLS(t *testing.T) {
	program(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ok(t, err)
	cert, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, &x509.Certificate{}, &key.PublicKey, key)
	ok(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	ok(t, err)
	dir := t.TempDir()
	crt := write(t, dir, "cert.pem", "CERTIFICATE", cert)
	s := start(t, "--tls-cert-file", crt, "--tls-key-file", write(t, dir, "key.pem", "PRIVATE KEY", raw), "--tls-ca-cert-file", crt, "--tls-auth-clients", "no")
	m := attach(t, open(t, redis.Options{URL: "rediss://" + s.addr() + "?skip_verify=true"}))
	ok(t, m.Set(t.Context(), "k", 1))
	has(t, m, "k", 1.0)
	_, err = redis.Open(t.Context(), redis.Options{URL: "rediss://" + s.addr()})
	fails(t, err, working.ErrUnavailable)
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("%v does not say that it is the certificate", err)
	}
	_, err = redis.Open(t.Context(), redis.Options{URL: "redis://" + s.addr()})
	fails(t, err, working.ErrUnavailable)
}

func TestUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "r") // the path of a socket is short
	ok(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	start(t, "--unixsocket", filepath.Join(dir, "s"))
	m := attach(t, open(t, redis.Options{URL: "unix://" + filepath.Join(dir, "s") + "?db=3"}))
	ok(t, m.Set(t.Context(), "k", 1))
	has(t, m, "k", 1.0)
}

// If the pool is too small, an operation waits and then returns an error; Redis is reachable, so this
// causes no fallback.
func TestPoolTooSmall(t *testing.T) {
	s := start(t)
	h := open(t, redis.Options{URL: s.url() + "?pool_size=1&pool_timeout=1ms", Fallback: true})
	m := attach(t, h)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 100 {
				if err := m.Set(t.Context(), "k", 1); err != nil {
					fails(t, err, working.ErrUnavailable)
				}
			}
		})
	}
	wg.Wait()
	if h.UsingFallback() {
		t.Error("falls back because the pool is too small")
	}
}
