package s3_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/remote/s3"
)

// bucket is an object store in memory with one bucket. gofakes3 has the protocol; conditions are compared here, when a
// body has arrived, so that of several requests at the same time one wins.
type bucket struct {
	t      testing.TB
	server *httptest.Server
	fake   http.Handler

	mu sync.Mutex
	// before, if not nil, may answer a request itself; it is called when the body has arrived, under the lock.
	before func(w http.ResponseWriter, r *http.Request) (answered bool)
	// lose, if not nil, chooses requests that are executed and whose answer is lost.
	lose func(r *http.Request) bool
	// early makes the store compare conditions when a request begins, ignore one, or ignore all.
	early, blind bool
	requests     []string // method and key of each request
}

func newBucket(t testing.TB) *bucket {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("copies"); err != nil {
		t.Fatal(err)
	}
	b := &bucket{t: t, fake: gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()}
	b.server = httptest.NewServer(b)
	t.Cleanup(b.server.Close)
	return b
}

// ServeHTTP executes a request.
func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if b.early && !b.holds(r) {
		refuse(w)
		return
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(data))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests = append(b.requests, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/copies/"))
	if b.before != nil && b.before(w, r) {
		return
	}
	if !b.early && !b.blind && !b.holds(r) {
		refuse(w)
		return
	}
	r.Header.Del("If-Match")
	r.Header.Del("If-None-Match")
	if b.lose != nil && b.lose(r) {
		b.fake.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
	b.fake.ServeHTTP(w, r)
}

func refuse(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(http.StatusPreconditionFailed)
	_, _ = io.WriteString(w, "<Error><Code>PreconditionFailed</Code></Error>")
}

// fail answers a request with an error of the object store.
func fail(w http.ResponseWriter, status int, code string) bool {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code><Message>as the test wants it</Message></Error>")
	return true
}

// holds reports whether the conditions of a request to store an object hold.
func (b *bucket) holds(r *http.Request) bool {
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	if r.Method != http.MethodPut || match == "" && none == "" {
		return true
	}
	look := httptest.NewRequest(http.MethodHead, r.URL.Path, nil)
	answer := httptest.NewRecorder()
	b.fake.ServeHTTP(answer, look)
	there := answer.Code == http.StatusOK
	if none == "*" && there {
		return false
	}
	return match == "" || there && answer.Header().Get("ETag") == match
}

// options name a place in the bucket.
func (b *bucket) options(prefix string) s3.Options {
	u, err := url.Parse(b.server.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	return s3.Options{Bucket: "copies", Prefix: prefix, Endpoint: u.Host, Region: "us-east-1", NoTLS: true,
		Credentials: credentials.NewStaticV4("id", "secret", ""), Transport: b.server.Client().Transport,
		Sleep: func(ctx context.Context, d time.Duration) error { return vfs.Sleep(ctx, min(d, 2*time.Millisecond)) }}
}

// create makes a place a remote.
func (b *bucket) create(prefix string) *s3.Remote {
	b.t.Helper()
	r, err := s3.Create(b.t.Context(), b.options(prefix))
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// open opens the remote at a place.
func (b *bucket) open(prefix string) *s3.Remote {
	b.t.Helper()
	r, err := s3.Open(b.t.Context(), b.options(prefix))
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// with calls f under the lock of the bucket.
func (b *bucket) with(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// do executes a request on the object store behind the conditions.
func (b *bucket) do(method, path string, data []byte) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	request := httptest.NewRequest(method, path, bytes.NewReader(data))
	request.Header.Set("Content-Length", strconv.Itoa(len(data)))
	b.fake.ServeHTTP(answer, request)
	if answer.Code >= 300 {
		b.t.Fatalf("%s %s: %d %s", method, path, answer.Code, answer.Body)
	}
	return answer
}

func (b *bucket) get(key string) []byte {
	return b.do(http.MethodGet, "/copies/"+key, nil).Body.Bytes()
}
func (b *bucket) put(key string, data []byte) { b.do(http.MethodPut, "/copies/"+key, data) }
func (b *bucket) remove(key string)           { b.do(http.MethodDelete, "/copies/"+key, nil) }

// keys returns the keys with a prefix.
func (b *bucket) keys(prefix string) (keys []string) {
	var list struct {
		Contents []struct{ Key string }
	}
	answer := b.do(http.MethodGet, "/copies?list-type=2&max-keys=1000&prefix="+url.QueryEscape(prefix), nil)
	if err := xml.Unmarshal(answer.Body.Bytes(), &list); err != nil {
		b.t.Fatal(err)
	}
	for _, c := range list.Contents {
		keys = append(keys, c.Key)
	}
	return keys
}
