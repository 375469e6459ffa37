package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/varve-db/varve/memorystores"
)

// api calls the Memory Stores API of a server.
type api struct {
	url, key string
	client   *http.Client
	store    string // path of the memory store, below the stores
	byPath   bool
}

func newAPI(o *options) *api {
	return &api{url: strings.TrimSuffix(o.url, "/") + memorystores.Base, key: o.key, byPath: o.byPath,
		client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: o.clients}}}
}

// answer is the answer to a request. Its status is 0 if there was none.
type answer struct {
	status int
	memory memory
	text   string
}

// memory has the fields of a memory, and of a version, that the clients use.
type memory struct {
	ID      string
	Path    string
	Content *string
	Hash    string `json:"content_sha256"`
}

func (a *answer) ok() bool { return a.status == http.StatusOK || a.status == http.StatusCreated }

// unknown reports whether the request may have been done or not.
func (a *answer) unknown() bool {
	return a.status == 0 || a.status == http.StatusBadGateway || a.status == http.StatusServiceUnavailable ||
		a.status == 529
}

// conflict reports whether a condition of the request was not met.
func (a *answer) conflict(byPath bool) bool {
	return a.status == http.StatusConflict || a.status == http.StatusPreconditionFailed ||
		byPath && a.status == http.StatusBadRequest && (strings.Contains(a.text, "mismatch") ||
			strings.Contains(a.text, "exists at path"))
}

// do sends a request. No request is cancelled, so that only kills leave writes without an answer.
func (c *api) do(ctx context.Context, method, path string, body any) answer {
	var in io.Reader = http.NoBody
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return answer{}
		}
		in = bytes.NewReader(b)
	}
	to := c.url + path + "?beta=true"
	if at, query, ok := strings.Cut(path, "?"); ok {
		to = c.url + at + "?beta=true&" + query
	}
	req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), method, to, in)
	if err != nil {
		return answer{}
	}
	req.Header.Set("X-Api-Key", c.key)
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("Anthropic-Beta", memorystores.Betas()[0])
	req.Header.Set("Content-Type", "application/json")
	res, err := c.client.Do(req)
	if err != nil {
		return answer{}
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{}
	}
	a := answer{status: res.StatusCode, text: string(text)}
	if a.ok() && json.Unmarshal(text, &a.memory) != nil {
		a.status = -1
	}
	return a
}

func (c *api) createStore(ctx context.Context) error {
	a := c.do(ctx, "POST", "", map[string]any{"name": fmt.Sprint("killed ", time.Now().UnixNano())})
	if !a.ok() {
		return fmt.Errorf("creating a memory store: %d %s", a.status, a.text)
	}
	c.store = "/" + a.memory.ID
	return nil
}

func (c *api) create(ctx context.Context, path, content string) answer {
	return c.do(ctx, "POST", c.store+"/memories", map[string]any{"path": path, "content": content})
}

// update replaces the content of a memory, if it has the hash; an empty hash is no condition.
func (c *api) update(ctx context.Context, m memory, content, hash string) answer {
	in := map[string]any{"content": content}
	if hash != "" {
		in["precondition"] = map[string]any{"type": "content_sha256", "content_sha256": hash}
	}
	if c.byPath {
		in["path"] = m.Path
		return c.do(ctx, "POST", c.store+"/memories", in)
	}
	return c.do(ctx, "POST", c.store+"/memories/"+m.ID, in)
}

func (c *api) get(ctx context.Context, id string) answer {
	return c.do(ctx, "GET", c.store+"/memories/"+id, nil)
}

func (c *api) remove(ctx context.Context, id string) answer {
	return c.do(ctx, "DELETE", c.store+"/memories/"+id, nil)
}

// list returns all items of a list of the store.
func (c *api) list(ctx context.Context, of, query string) ([]memory, error) {
	var all []memory
	for page := ""; ; {
		a := c.do(ctx, "GET", c.store+of+"?limit=100"+query+page, nil)
		var list struct {
			Data []memory
			Next *string `json:"next_page"`
		}
		if !a.ok() {
			return nil, fmt.Errorf("%s: %d %s", of, a.status, a.text)
		}
		if err := json.Unmarshal([]byte(a.text), &list); err != nil {
			return nil, errors.Join(errors.New(of), err)
		}
		all = append(all, list.Data...)
		if list.Next == nil || *list.Next == "" {
			return all, nil
		}
		page = "&page=" + url.QueryEscape(*list.Next)
	}
}
