package memorystores

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/note"
)

// memoryObject is the JSON of a memory.
type memoryObject struct {
	ID               string  `json:"id"`
	Type             string  `json:"type"`
	MemoryStoreID    string  `json:"memory_store_id"`
	MemoryVersionID  string  `json:"memory_version_id"`
	Path             string  `json:"path"`
	Content          *string `json:"content"`
	ContentSHA256    string  `json:"content_sha256"`
	ContentSizeBytes int64   `json:"content_size_bytes"`
	CreatedAt        string  `json:"created_at"`
	UpdatedAt        string  `json:"updated_at"`
}

// prefixObject is the JSON of a list entry that represents all memories below a path.
type prefixObject struct {
	Path string `json:"path"`
	Type string `json:"type"`
}

func (h *handle) shown(i *varve.NoteInfo) memoryObject {
	return memoryObject{ID: memoryOf(i.ID, i.CreatedAt).String(), Type: "memory", MemoryStoreID: h.id,
		MemoryVersionID: versionString(i.Version), Path: "/" + i.Path, ContentSHA256: i.ContentHash,
		ContentSizeBytes: i.Size, CreatedAt: stamp(i.CreatedAt), UpdatedAt: stamp(i.UpdatedAt)}
}

// text returns the content of a note as the API returns it: nil if the content is too large for the API, or not
// UTF-8.
func text(content []byte) *string {
	if len(content) > MostContent || !utf8.Valid(content) {
		return nil
	}
	s := string(content)
	return &s
}

// errNotText is the error for a memory whose content cannot be encoded as JSON.
var errNotText = refuse(http.StatusBadRequest, "content: the file is not valid UTF-8, so this API cannot show or "+
	"change it: another program wrote the file, and only such a program can change it; view=basic shows the rest")

// changeable returns an error if the API must not change a memory with this content.
func changeable(content []byte) error {
	switch {
	case len(content) > MostContent:
		return refuse(http.StatusBadRequest, "content: the memory has %d bytes, more than the %d of this API: it was "+
			"written by another program, and only such a program can change it", len(content), MostContent)
	case !utf8.Valid(content):
		return errNotText
	}
	return nil
}

// notePath returns the path of the note in which a memory with the given path is stored.
func notePath(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, "/")
	if !ok {
		return "", invalid("path", "must begin with /")
	}
	if len(path) > note.MostPath {
		return "", invalid("path", "has %d bytes, the limit is %d", len(path), note.MostPath)
	}
	if err := note.CheckPath(rest); err != nil {
		var field *varve.FieldError
		if errors.As(err, &field) && field.Err != nil {
			if field.Limit != "" {
				return "", invalid("path", "%v, the limit is %s", field.Err, field.Limit)
			}
			return "", invalid("path", "%v", field.Err)
		}
		return "", invalid("path", "%v", err)
	}
	return rest, nil
}

func checkContent(content string) error {
	if len(content) > MostContent {
		return invalid("content", "has %d bytes, the limit is %d", len(content), MostContent)
	}
	return nil
}

// withStore opens the store that a request's path denotes, calls f with the store, and returns the result of f.
func (s *Stores) withStore(r *http.Request,
	f func(ctx context.Context, h *handle, ns varve.Notes) (any, error)) (any, error) {
	h, err := s.use(r.Context(), r.PathValue("store"))
	if err != nil {
		return nil, err
	}
	defer s.release(h)
	return f(r.Context(), h, h.store.Notes())
}

var errNoMemory = refuse(http.StatusNotFound, "there is no such memory in this store")

// read returns the note in which the memory with this id is stored.
func (h *handle) read(ctx context.Context, id string) (varve.Note, error) {
	m, ok := parseMemory(id)
	if !ok {
		return varve.Note{}, errNoMemory
	}
	path, ok, err := h.view.path(ctx, h.store, m)
	for range 100 {
		if err != nil {
			return varve.Note{}, err
		}
		if !ok {
			return varve.Note{}, errNoMemory
		}
		n, rerr := h.store.Notes().Read(ctx, path)
		switch {
		case rerr == nil && memoryOf(n.ID, n.CreatedAt) == m:
			return n, nil
		case rerr != nil && !errors.Is(rerr, varve.ErrNotFound):
			return varve.Note{}, rerr
		}
		path, ok, err = h.view.moved(ctx, h.store, m, path)
	}
	return varve.Note{}, refuse(http.StatusConflict, "the memory is moved faster than it can be read: try again")
}

// clash returns the error for the client if a write failed because the path conflicts with that of another note. If err
// has another cause, clash returns nil.
func clash(err error, path string) error {
	var conflict *varve.ConflictError
	var field *varve.FieldError
	switch {
	case errors.As(err, &conflict) && conflict.ID == path:
		return &refusal{http.StatusConflict, pathConflict, "path: there is a memory at this path"}
	case errors.As(err, &field) && field.Field == "path":
		return &refusal{http.StatusConflict, pathConflict, "path: conflicts with the path of another memory: one " +
			"of the two would be a folder, or the two differ only in case, which this server does not distinguish"}
	}
	return nil
}

func createMemory(s *Stores, r *http.Request, _ Caller) (any, error) {
	q := parameters(r, "view")
	full := q.view(false)
	var in struct {
		Path    *string `json:"path"`
		Content *string `json:"content"`
	}
	if q.err != nil {
		return nil, q.err
	}
	if err := body(r, &in); err != nil {
		return nil, err
	}
	switch {
	case in.Path == nil:
		return nil, invalid("path", "required")
	case in.Content == nil:
		return nil, invalid("content", "required; an empty memory has \"\"")
	}
	path, err := notePath(*in.Path)
	if err == nil {
		err = checkContent(*in.Content)
	}
	if err != nil {
		return nil, err
	}
	return s.withStore(r, func(ctx context.Context, h *handle, ns varve.Notes) (any, error) {
		end, err := h.writing(ctx)
		if err != nil {
			return nil, err
		}
		defer end()
		i, err := ns.Write(ctx, path, []byte(*in.Content), varve.IfAbsent())
		if err != nil {
			if c := clash(err, path); c != nil {
				return nil, c
			}
			return nil, err
		}
		o := h.shown(&i)
		if full {
			o.Content = in.Content
		}
		return o, nil
	})
}

func getMemory(s *Stores, r *http.Request, _ Caller) (any, error) {
	q := parameters(r, "view")
	full := q.view(true)
	if q.err != nil {
		return nil, q.err
	}
	return s.withStore(r, func(ctx context.Context, h *handle, _ varve.Notes) (any, error) {
		n, err := h.read(ctx, r.PathValue("memory"))
		if err != nil {
			return nil, err
		}
		o := h.shown(&n.NoteInfo)
		if full {
			if o.Content = text(n.Content); o.Content == nil && len(n.Content) <= MostContent {
				return nil, errNotText
			}
		}
		return o, nil
	})
}

func checkHash(field, hash string) error {
	if b, err := hex.DecodeString(hash); err != nil || len(b) != 32 || hash != strings.ToLower(hash) {
		return invalid(field, "must be 64 lower-case hexadecimal digits")
	}
	return nil
}

var errPrecondition = &refusal{http.StatusConflict, preconditionFailed,
	"the content of the memory does not match the precondition: read the memory and try again"}

// change calls f with the note of the memory with this id, and returns the result of f. If hash is not "" and differs
// from the hash of the content, change returns an error. If another writer has changed the memory meanwhile, change
// reads the memory again and repeats the call.
func (h *handle) change(ctx context.Context, id, hash string, f func(n *varve.Note) (any, error)) (any, error) {
	for {
		n, err := h.read(ctx, id)
		if err != nil {
			return nil, err
		}
		if hash != "" && hash != n.ContentHash {
			return nil, errPrecondition
		}
		if err := changeable(n.Content); err != nil {
			return nil, err
		}
		answer, err := f(&n)
		var told *refusal
		if err == nil || errors.As(err, &told) || ctx.Err() != nil ||
			!errors.Is(err, varve.ErrConflict) && !errors.Is(err, varve.ErrNotFound) {
			return answer, err
		}
	}
}

func updateMemory(s *Stores, r *http.Request, _ Caller) (any, error) {
	q := parameters(r, "view")
	full := q.view(false)
	var in struct {
		Path         *string `json:"path"`
		Content      *string `json:"content"`
		Precondition *struct {
			Type string  `json:"type"`
			Hash *string `json:"content_sha256"`
		} `json:"precondition"`
	}
	if q.err != nil {
		return nil, q.err
	}
	if err := body(r, &in); err != nil {
		return nil, err
	}
	to, hash := "", ""
	var content []byte
	var err error
	if in.Path != nil {
		to, err = notePath(*in.Path)
	}
	if in.Content != nil && err == nil {
		content = append([]byte{}, *in.Content...)
		err = checkContent(*in.Content)
	}
	if p := in.Precondition; p != nil && err == nil {
		switch {
		case p.Type != "content_sha256":
			err = invalid("precondition.type", "must be content_sha256")
		case p.Hash == nil:
			err = invalid("precondition.content_sha256", "required")
		default:
			hash = *p.Hash
			err = checkHash("precondition.content_sha256", hash)
		}
	}
	if err != nil {
		return nil, err
	}
	return s.withStore(r, func(ctx context.Context, h *handle, ns varve.Notes) (any, error) {
		end, err := h.writing(ctx)
		if err != nil {
			return nil, err
		}
		defer end()
		return h.change(ctx, r.PathValue("memory"), hash, func(n *varve.Note) (any, error) {
			i, err := ns.Update(ctx, n.Path, to, content, varve.IfVersion(n.Version))
			if err != nil {
				if c := clash(err, to); to != "" && to != n.Path && c != nil {
					return nil, c
				}
				return nil, err
			}
			o := h.shown(&i)
			if full {
				if o.Content = in.Content; content == nil {
					o.Content = text(n.Content)
				}
			}
			return o, nil
		})
	})
}

func deleteMemory(s *Stores, r *http.Request, _ Caller) (any, error) {
	q := parameters(r, "expected_content_sha256")
	hash := q.text("expected_content_sha256")
	if q.err == nil && q.has("expected_content_sha256") {
		q.err = checkHash("expected_content_sha256", hash)
	}
	if q.err != nil {
		return nil, q.err
	}
	if err := noBody(r); err != nil {
		return nil, err
	}
	return s.withStore(r, func(ctx context.Context, h *handle, ns varve.Notes) (any, error) {
		id := r.PathValue("memory")
		return h.change(ctx, id, hash, func(n *varve.Note) (any, error) {
			if err := ns.Delete(ctx, n.Path, varve.IfVersion(n.Version)); err != nil {
				return nil, err
			}
			return deleted{id, "memory_deleted"}, nil
		})
	})
}

func listMemories(s *Stores, r *http.Request, _ Caller) (any, error) {
	q := parameters(r, "path_prefix", "depth", "limit", "page", "view")
	full := q.view(false)
	depth := q.number("depth", 0, 0, note.MostSegments)
	place, limit := q.page('m', full)
	folder := ""
	if prefix := q.text("path_prefix"); q.has("path_prefix") && prefix != "/" {
		rest, ok := strings.CutSuffix(prefix, "/")
		if !ok {
			q.fail("path_prefix", "must end with /")
		}
		var err error
		if folder, err = notePath(rest); err != nil && ok {
			q.fail("path_prefix", "%s", strings.TrimPrefix(err.Error(), "path: "))
		}
	}
	since, place, err := parsePlace(place)
	if err != nil {
		q.fail("page", "must be the next_page of an answer to the same request")
	}
	if q.err != nil {
		return nil, q.err
	}
	return s.withStore(r, func(ctx context.Context, h *handle, _ varve.Notes) (any, error) {
		if since == 0 {
			var err error
			if since, err = h.view.begin(ctx, h.store); err != nil {
				return nil, err
			}
		}
		l := &memoryList{h: h, folder: folder, depth: depth, after: place, limit: limit, full: full}
		if err := l.read(ctx, since); err != nil {
			return nil, err
		}
		out := listing{Data: l.data}
		if l.more {
			out.NextPage = page('m', strconv.FormatUint(since, 10)+" "+l.last)
		}
		return out, nil
	})
}

// parsePlace parses the place of a page of memories: the log position at which the listing began, and the key of
// the last entry of the previous page.
func parsePlace(place string) (since uint64, after string, err error) {
	if place == "" {
		return 0, "", nil
	}
	number, after, _ := strings.Cut(place, " ")
	if since, err = strconv.ParseUint(number, 10, 64); err == nil {
		err = note.CheckPath(strings.TrimSuffix(strings.TrimSuffix(after, left), "/"))
	}
	return since, after, err
}
