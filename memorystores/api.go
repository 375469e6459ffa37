package memorystores

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	strict "github.com/go-json-experiment/json"

	"github.com/varve-db/varve"
)

// Base is the path with which all paths of the API begin.
const Base = "/v1/memory_stores"

// Betas returns the permitted values of the header anthropic-beta. Each request must have one of them.
func Betas() []string { return []string{"managed-agents-2026-04-01", "agent-memory-2026-07-22"} }

// Limits of requests.
const (
	MostContent  = 102_400 // maximum number of bytes of a memory's content
	mostBody     = 1 << 20 // maximum number of bytes of a request
	mostPage     = 100     // maximum number of items on a page
	mostFullPage = 20      // maximum number of items on a page that includes the contents
	defaultPage  = 20
)

// Route is a method and path of the API with its handler.
type Route struct {
	Pattern string // pattern for http.ServeMux
	Handler http.Handler
}

// method answers a request that passed the checks. The returned value is encoded as the JSON of the answer.
type method func(s *Stores, r *http.Request, by Caller) (any, error)

// routes returns the methods of the API, and for each method whether it changes data.
func routes() []struct {
	pattern string
	writes  bool
	method  method
} {
	const store, memory, version = Base + "/{store}", Base + "/{store}/memories", Base + "/{store}/memory_versions"
	return []struct {
		pattern string
		writes  bool
		method  method
	}{
		{"POST " + Base, true, createStore},
		{"GET " + Base, false, listStores},
		{"GET " + store, false, getStore},
		{"POST " + store, true, updateStore},
		{"DELETE " + store, true, deleteStore},
		{"POST " + store + "/archive", true, archiveStore},
		{"POST " + memory, true, createMemory},
		{"GET " + memory, false, listMemories},
		{"GET " + memory + "/{memory}", false, getMemory},
		{"POST " + memory + "/{memory}", true, updateMemory},
		{"DELETE " + memory + "/{memory}", true, deleteMemory},
		{"GET " + version, false, listVersions},
		{"GET " + version + "/{version}", false, getVersion},
		{"POST " + version + "/{version}/redact", true, redactVersion},
	}
}

// Routes returns the routes of the API. They include a route for all other paths below /v1/, which answers with the
// status 404 or, for a wrong method, 405.
func (s *Stores) Routes() []Route {
	var list []Route
	for _, m := range routes() {
		list = append(list, Route{m.pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.serve(w, r, m.writes, m.method)
		})})
	}
	return append(list, Route{"/v1/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, m := range routes() {
			if _, path, _ := strings.Cut(m.pattern, " "); matches(path, r.URL.Path) {
				WriteError(w, http.StatusMethodNotAllowed, "this path does not support the method "+r.Method)
				return
			}
		}
		WriteError(w, http.StatusNotFound, "there is no such path")
	})})
}

// matches reports whether a path matches a pattern of http.ServeMux.
func matches(pattern, path string) bool {
	a, b := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !strings.HasPrefix(a[i], "{") && a[i] != b[i] {
			return false
		}
	}
	return true
}

func (s *Stores) serve(w http.ResponseWriter, r *http.Request, writes bool, m method) {
	by, ok := s.o.Caller(r.Context())
	var err error
	switch {
	case !ok:
		err = refuse(http.StatusForbidden, "the token may not use this API")
	case by.ReadOnly && writes:
		err = refuse(http.StatusForbidden, "the token may not change anything")
	case !hasBeta(r.Header):
		err = refuse(http.StatusBadRequest, "the header anthropic-beta must have %s", strings.Join(Betas(), " or "))
	}
	if id := r.PathValue("store"); err == nil && by.Stores != nil && id != "" && !slices.Contains(by.Stores, id) {
		err = errNoStore // whether it exists is not told
	}
	var answer any
	if err == nil {
		r = r.WithContext(varve.WithWriter(r.Context(), varve.Writer{Program: "memory stores API", Token: by.Name}))
		answer, err = m(s, r, by)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Request-Id", requestID+random(15))
	writeJSON(w, http.StatusOK, answer)
}

func hasBeta(h http.Header) bool {
	for _, line := range h.Values("Anthropic-Beta") {
		for beta := range strings.SplitSeq(line, ",") {
			if slices.Contains(Betas(), strings.TrimSpace(beta)) {
				return true
			}
		}
	}
	return false
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // the client is gone
}

// refusal is an error whose text the client gets.
type refusal struct {
	status int
	kind   string // kind of the error; "": the kind that belongs to the status
	text   string
}

func (e *refusal) Error() string { return e.text }

func refuse(status int, format string, args ...any) error {
	return &refusal{status: status, text: fmt.Sprintf(format, args...)}
}

// invalid returns the error for the client about an invalid field, parameter or header.
func invalid(field, format string, args ...any) error {
	return refuse(http.StatusBadRequest, "%s: %s", field, fmt.Sprintf(format, args...))
}

// Kinds of errors that differ from the kind that belongs to their status.
const (
	preconditionFailed = "memory_precondition_failed_error"
	pathConflict       = "memory_path_conflict_error"
)

func kindOf(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusConflict:
		return "conflict_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	case http.StatusServiceUnavailable, statusOverloaded:
		return "overloaded_error"
	}
	if status < http.StatusInternalServerError {
		return "invalid_request_error"
	}
	return "api_error"
}

// statusOverloaded is the HTTP status by which this API tells clients that the server has too much to do.
const statusOverloaded = 529

// errorAnswer is the JSON body of the answer to a request that failed.
type errorAnswer struct {
	Type      string      `json:"type"`
	Error     errorObject `json:"error"`
	RequestID string      `json:"request_id"`
}

type errorObject struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// WriteError answers a request to the API that was refused before any Route handled it, for example because of its API
// key.
func WriteError(w http.ResponseWriter, status int, message string) {
	writeError(w, &refusal{status: status, text: message}, requestID+random(15))
}

func writeError(w http.ResponseWriter, e *refusal, id string) {
	kind := e.kind
	if kind == "" {
		kind = kindOf(e.status)
	}
	w.Header().Set("Request-Id", id)
	writeJSON(w, e.status, errorAnswer{Type: "error", Error: errorObject{kind, e.text}, RequestID: id})
}

// fail answers a request that failed. If the client must not see the text of err, fail logs err.
func (s *Stores) fail(w http.ResponseWriter, r *http.Request, err error) {
	id := requestID + random(15)
	e := toRefusal(r.Context(), err)
	if e.status >= http.StatusInternalServerError {
		s.o.Logger.Error("a request failed", "request_id", id, "err", err)
	}
	writeError(w, e, id)
}

// toRefusal converts an error into the refusal that the client gets.
func toRefusal(ctx context.Context, err error) *refusal {
	var e *refusal
	var copied *DuplicateError
	var field *varve.FieldError
	var conflict *varve.ConflictError
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &copied):
		return &refusal{status: http.StatusConflict, text: copied.Error()}
	case errors.Is(err, errNoStore):
		return &refusal{status: http.StatusNotFound, text: "there is no such memory store"}
	case errors.Is(err, errOverloaded):
		return &refusal{status: statusOverloaded, text: errOverloaded.Error()}
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded):
		return &refusal{status: http.StatusGatewayTimeout, text: "the request took too long; a write may have happened"}
	case errors.As(err, &conflict):
		return &refusal{status: http.StatusConflict, text: "another request has changed the memory or the memory " +
			"store: read it again, then repeat the change"}
	case errors.Is(err, varve.ErrNotFound):
		return &refusal{status: http.StatusNotFound, text: "there is no such memory or version"}
	case errors.Is(err, varve.ErrPurged):
		return &refusal{status: http.StatusBadRequest, text: "content: this text was purged from the store"}
	case errors.As(err, &field) && (field.Field == "path" || field.Field == "content"): // others are not the client's
		return &refusal{status: http.StatusBadRequest, text: field.Error()}
	case errors.Is(err, varve.ErrDiskFull):
		return &refusal{status: http.StatusInternalServerError, text: "the disk of the server is full"}
	case errors.Is(err, varve.ErrTooManyFiles), errors.Is(err, varve.ErrLocked), errors.Is(err, varve.ErrClosed),
		errors.Is(err, varve.ErrReplaced):
		return &refusal{status: statusOverloaded, text: "the store is busy, or is opened again: try again"}
	}
	return &refusal{status: http.StatusInternalServerError,
		text: "the server could not do this: its log has the reason under the id of the request"}
}

// body decodes the JSON object in the body of a request into v. It refuses unknown members and invalid UTF-8.
func body(r *http.Request, v any) error {
	b, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, mostBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return refuse(http.StatusRequestEntityTooLarge, "the request has more than %d bytes", mostBody)
	case err != nil:
		return refuse(http.StatusBadRequest, "the body of the request could not be read")
	case !utf8.Valid(b):
		return refuse(http.StatusBadRequest, "the body of the request is not valid UTF-8")
	}
	if err := strict.Unmarshal(b, v, strict.RejectUnknownMembers(true)); err != nil {
		return refuse(http.StatusBadRequest, "the body of the request is not valid: %s",
			strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// noBody returns a refusal if the body of a request contains anything other than an empty object.
func noBody(r *http.Request) error {
	b, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, mostBody))
	if err != nil {
		return refuse(http.StatusRequestEntityTooLarge, "the body of this request must be empty or {}, but is too "+
			"large")
	}
	if len(b) == 0 {
		return nil
	}
	var empty struct{}
	if err := strict.Unmarshal(b, &empty, strict.RejectUnknownMembers(true)); err != nil {
		return refuse(http.StatusBadRequest, "the body of the request is not valid: %s",
			strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// query has the query parameters of a request; err is the error of the first invalid one.
type query struct {
	values url.Values
	err    error
}

// parameters returns the query parameters of a request. The result has an error if a parameter is not in allowed,
// is given twice or is not valid UTF-8. The parameter beta is always allowed.
func parameters(r *http.Request, allowed ...string) *query {
	values, err := url.ParseQuery(r.URL.RawQuery)
	q := &query{values: values}
	if err != nil {
		q.err = refuse(http.StatusBadRequest, "the query of the request cannot be parsed")
		return q
	}
	for name, list := range values {
		switch {
		case name == "beta":
		case !slices.Contains(allowed, name):
			q.fail(name, "there is no such parameter")
		case len(list) > 1:
			q.fail(name, "given twice")
		case !utf8.ValidString(list[0]):
			q.fail(name, "not valid UTF-8")
		}
	}
	return q
}

func (q *query) fail(name, format string, args ...any) {
	if q.err == nil {
		q.err = invalid(name, format, args...)
	}
}

func (q *query) has(name string) bool { return q.values.Has(name) }

func (q *query) text(name string) string { return q.values.Get(name) }

func (q *query) number(name string, otherwise, lowest, highest int) int {
	if !q.has(name) {
		return otherwise
	}
	n, err := strconv.Atoi(q.text(name))
	if err != nil || n < lowest || n > highest {
		q.fail(name, "must be a number from %d to %d", lowest, highest)
		return otherwise
	}
	return n
}

func (q *query) flag(name string) bool {
	switch v := q.text(name); {
	case !q.has(name), v == "false":
	case v == "true":
		return true
	default:
		q.fail(name, "must be true or false")
	}
	return false
}

// times returns the bounds that the parameters created_at[gte] and created_at[lte] set. A zero time means that there is
// no bound.
func (q *query) times() (from, to time.Time) {
	for name, at := range map[string]*time.Time{"created_at[gte]": &from, "created_at[lte]": &to} {
		if !q.has(name) {
			continue
		}
		var err error
		if *at, err = time.Parse(time.RFC3339, q.text(name)); err != nil {
			q.fail(name, "must be a time of RFC 3339, such as 2026-01-02T15:04:05Z")
		}
	}
	return from, to
}

// view reports whether the parameter view requests the contents. If the request does not have the parameter, view
// returns the value of otherwise.
func (q *query) view(otherwise bool) (full bool) {
	switch v := q.text("view"); {
	case !q.has("view"):
		return otherwise
	case v == "full":
		return true
	case v != "basic":
		q.fail("view", "must be basic or full")
	}
	return false
}

// page returns the place in the listing at which the requested page begins, and the maximum number of items of the
// page.
func (q *query) page(kind byte, full bool) (place string, limit int) {
	limit = q.number("limit", defaultPage, 1, mostPage)
	if full {
		limit = min(limit, mostFullPage)
	}
	if q.has("page") {
		var ok bool
		if place, ok = parsePage(kind, q.text("page")); !ok {
			q.fail("page", "must be the next_page of an answer to the same request")
		}
	}
	return place, limit
}

// listing is the JSON of the answer to a list.
type listing struct {
	Data     []any   `json:"data"`
	NextPage *string `json:"next_page"`
}

// stamp returns a time in the format of the API.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }
