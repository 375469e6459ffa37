package embed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

// Protocol is the HTTP protocol of an embedding service.
type Protocol string

// The supported protocols; see the package comment.
const (
	OpenAI Protocol = "openai"
	Ollama Protocol = "ollama"
)

// Options configure an Embedder. URL and Model are required.
type Options struct {
	URL   string
	Model string
	Key   string
	// number of dimensions of the vectors: requested from the service, and checked; 0: the model's default
	Dimensions int
	Protocol   Protocol      // "": derived from the URL
	Batch      int           // number of texts per request; 0 means 64
	Timeout    time.Duration // maximum duration of one request; 0 means 60 s
	Retries    int           // number of retries after the first attempt; 0 means 3, negative means none
	MaxWait    time.Duration // maximum wait before a retry; 0 means a minute. No retry if the service requires more
	// maximum size of one answer in bytes; 0 means 64 MiB. The limit is lower if the requested vectors need less
	MaxBytes   int64
	NoTruncate bool // a text that is too long is an error

	Client *http.Client                               // its Timeout and its handling of redirects are not used
	Clock  func() time.Time                           // nil means time.Now
	Sleep  func(context.Context, time.Duration) error // waits until the duration has passed or ctx ends
}

// Embedder requests vectors of one model from one service. It is safe for concurrent use.
type Embedder struct {
	o      Options
	target *url.URL
	client *http.Client
}

// New returns an Embedder, or an error if an option is invalid. It sends no request.
func New(o Options) (*Embedder, error) {
	bad := func(field, why string) error { return fmt.Errorf("embedding service: %s: %s", field, why) }
	u, err := url.Parse(strings.TrimSpace(o.URL))
	switch {
	case o.URL == "":
		return nil, bad("URL", "missing")
	case err != nil: // the text of err has the URL, which may contain a key
		return nil, bad("URL", "not a valid URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, bad("URL", "must begin with http:// or https://, followed by a host")
	case o.Model == "":
		return nil, bad("model", "missing")
	case o.Dimensions < 0:
		return nil, bad("dimensions", fmt.Sprintf("%d is negative", o.Dimensions))
	case o.Batch < 0 || o.Timeout < 0 || o.MaxWait < 0 || o.MaxBytes < 0:
		return nil, bad("options", "Batch, Timeout, MaxWait and MaxBytes must not be negative")
	case strings.ContainsAny(o.Key, "\r\n\x00"):
		return nil, bad("key", "must not contain a line break or a NUL byte")
	}
	if o.Protocol == "" {
		o.Protocol = protocolOf(u)
	}
	if u, err = endpoint(u, o.Protocol); err != nil {
		return nil, err
	}
	e := &Embedder{o: o, target: u, client: &http.Client{}}
	if o.Client != nil {
		*e.client = *o.Client
	}
	e.client.Timeout = 0 // ctx has the timeout
	e.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	e.fill()
	return e, nil
}

func (e *Embedder) fill() {
	o := &e.o
	if o.Batch == 0 {
		o.Batch = 64
	}
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	if o.Retries == 0 {
		o.Retries = 3
	}
	if o.MaxWait == 0 {
		o.MaxWait = time.Minute
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 64 << 20
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = vfs.Sleep
	}
}

// Model returns the name of the model.
func (e *Embedder) Model() string { return e.o.Model }

// URL returns the URL to which requests are sent, without user, password and query.
func (e *Embedder) URL() string {
	u := *e.target
	u.User, u.RawQuery = nil, ""
	return u.String()
}

// String returns the model and the URL.
func (e *Embedder) String() string { return e.o.Model + " at " + e.URL() }

func protocolOf(u *url.URL) Protocol {
	path := strings.TrimRight(u.Path, "/")
	if strings.HasSuffix(path, "/api") || strings.HasSuffix(path, "/api/embed") || path == "" && u.Port() == "11434" {
		return Ollama
	}
	return OpenAI
}

// endpoint returns u with the path for requests of the protocol p. It adds only the parts of the path that u does not
// have.
func endpoint(u *url.URL, p Protocol) (*url.URL, error) {
	version, name := "/v1", "/embeddings"
	switch p {
	case OpenAI:
	case Ollama:
		version, name = "/api", "/embed"
	default:
		return nil, fmt.Errorf("embedding service: protocol %q: must be %s or %s", p, OpenAI, Ollama)
	}
	full := *u
	full.RawPath, full.Fragment = "", ""
	switch path := strings.TrimRight(u.Path, "/"); {
	case strings.HasSuffix(path, name):
		full.Path = path
	case strings.HasSuffix(path, version):
		full.Path = path + name
	default:
		full.Path = path + version + name
	}
	return &full, nil
}

// openAIHost is the host of OpenAI. FromEnv uses OPENAI_API_KEY only for this host.
const openAIHost = "api.openai.com"

// FromEnv returns the Embedder that the environment variables VARVE_EMBED_* configure. ok is false if VARVE_EMBED_URL
// is not set, and if FromEnv returns an error.
func FromEnv(get func(string) string) (e *Embedder, ok bool, err error) {
	o := Options{URL: get("VARVE_EMBED_URL"), Model: get("VARVE_EMBED_MODEL"), Key: get("VARVE_EMBED_KEY")}
	if o.URL == "" {
		return nil, false, nil
	}
	if s := get("VARVE_EMBED_DIMENSIONS"); s != "" {
		if o.Dimensions, err = strconv.Atoi(s); err != nil || o.Dimensions <= 0 {
			return nil, false, fmt.Errorf("VARVE_EMBED_DIMENSIONS is %q: must be a whole number above 0", s)
		}
	}
	if o.Model == "" {
		return nil, false, errors.New("VARVE_EMBED_URL is set, but VARVE_EMBED_MODEL is not: set VARVE_EMBED_MODEL " +
			"to the name of the model")
	}
	if u, err := url.Parse(o.URL); err == nil && o.Key == "" && u.Scheme == "https" && strings.EqualFold(u.Hostname(),
		openAIHost) {
		o.Key = get("OPENAI_API_KEY")
	}
	if e, err = New(o); err != nil {
		return nil, false, fmt.Errorf("VARVE_EMBED_*: %w", err)
	}
	return e, true, nil
}

// spread shortens d by up to a quarter at random. Without this, clients whose requests failed at the same time would
// also retry at the same time.
func spread(d time.Duration) time.Duration { return d - rand.N(d/4+1) }
