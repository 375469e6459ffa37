package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
)

// sdk is the client for Node that is tested.
const sdk = "@anthropic-ai/sdk@1.14.0"

// serving starts memctl serve --stores for a new folder, and returns its URL, a token, and the folder.
func serving(t *testing.T) (url, key, dir string) {
	t.Helper()
	dir = t.TempDir()
	memctl := filepath.Join(dir, "memctl")
	if out, err := exec.Command("go", "build", "-C", "../..", "-o", memctl, "./cmd/memctl").CombinedOutput(); err != nil {
		t.Fatalf("%s%v", out, err)
	}
	env := append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "VARVE_STORE=")
	add := exec.Command(memctl, "serve", "token", "add", "laptop")
	add.Env = env
	out, err := add.Output()
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "stores")
	serve := exec.Command(memctl, "serve", "--stores", dir, "--addr", "127.0.0.1:0")
	serve.Env = env
	stderr, err := serve.StderrPipe()
	if err == nil {
		err = serve.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for lines := bufio.NewScanner(stderr); url == "" && lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		_, url, _ = strings.Cut(lines.Text(), "applications connect to ")
	}
	if url == "" {
		_ = serve.Wait()
		t.Fatalf("memctl serve did not start:\n%s", said.String())
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		rest, _ := io.ReadAll(stderr)
		said.Write(rest)
	}()
	t.Cleanup(func() {
		_ = serve.Process.Signal(os.Interrupt)
		<-copied
		if err := serve.Wait(); err != nil || t.Failed() {
			t.Errorf("memctl serve ended with %v:\n%s", err, said.String())
		}
	})
	return url, strings.TrimSpace(string(out)), dir
}

func hashOf(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

// TestGoClient calls all methods by the client for Go.
func TestGoClient(t *testing.T) {
	url, key, dir := serving(t)
	client := anthropic.NewClient(option.WithBaseURL(url), option.WithAPIKey(key), option.WithMaxRetries(0))
	ctx := t.Context()
	stores := client.Beta.MemoryStores
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fails := func(status int, kind anthropic.ErrorType, err error) {
		t.Helper()
		var e *anthropic.Error
		if !errors.As(err, &e) || e.StatusCode != status || !strings.Contains(e.RawJSON(), string(kind)) ||
			e.RequestID == "" {
			t.Errorf("%v, want %d %s", err, status, kind)
		}
	}
	s, err := stores.New(ctx, anthropic.BetaMemoryStoreNewParams{Name: "go", Description: anthropic.String("d"),
		Metadata: map[string]string{"a": "1"}})
	must(err)
	s, err = stores.Update(ctx, s.ID, anthropic.BetaMemoryStoreUpdateParams{Name: anthropic.String("by go"),
		Metadata: map[string]string{"b": "2"}})
	must(err)
	got, err := stores.Get(ctx, s.ID, anthropic.BetaMemoryStoreGetParams{})
	must(err)
	if got.Name != "by go" || got.Description != "d" || got.Metadata["a"]+got.Metadata["b"] != "12" ||
		got.CreatedAt.IsZero() || got.UpdatedAt.IsZero() || !got.ArchivedAt.IsZero() {
		t.Errorf("%+v", got)
	}
	for i := range 5 {
		_, err := stores.New(ctx, anthropic.BetaMemoryStoreNewParams{Name: fmt.Sprint("more ", i)})
		must(err)
	}
	listed := func(p anthropic.BetaMemoryStoreListParams) (names []string) {
		t.Helper()
		list := stores.ListAutoPaging(ctx, p)
		for list.Next() {
			names = append(names, list.Current().Name)
		}
		must(list.Err())
		return names
	}
	if names := listed(anthropic.BetaMemoryStoreListParams{Limit: anthropic.Int(2)}); len(names) != 6 {
		t.Error(names)
	}
	m, err := stores.Memories.New(ctx, s.ID, anthropic.BetaMemoryStoreMemoryNewParams{Path: "/a.md",
		Content: anthropic.String("one")})
	must(err)
	if b, err := os.ReadFile(filepath.Join(dir, s.ID, "notes", "a.md")); err == nil && string(b) != "one" {
		t.Errorf("the file has %q", b) // it may not be flushed yet
	}
	one, err := stores.Memories.Get(ctx, m.ID, anthropic.BetaMemoryStoreMemoryGetParams{MemoryStoreID: s.ID})
	must(err)
	if one.Content != "one" || one.ContentSha256 != hashOf("one") || one.ContentSizeBytes != 3 || one.Path != "/a.md" {
		t.Errorf("%+v", one)
	}
	condition := func(text string) anthropic.BetaManagedAgentsPreconditionParam {
		return anthropic.BetaManagedAgentsPreconditionParam{ContentSha256: anthropic.String(hashOf(text))}
	}
	two, err := stores.Memories.Update(ctx, m.ID, anthropic.BetaMemoryStoreMemoryUpdateParams{MemoryStoreID: s.ID,
		Content: anthropic.String("two"), Path: anthropic.String("/b/c.md"), Precondition: condition("one"),
		View: anthropic.BetaManagedAgentsMemoryViewFull})
	must(err)
	if two.Content != "two" || two.Path != "/b/c.md" || two.ID != m.ID {
		t.Errorf("%+v", two)
	}
	_, err = stores.Memories.Update(ctx, m.ID, anthropic.BetaMemoryStoreMemoryUpdateParams{MemoryStoreID: s.ID,
		Content: anthropic.String("x"), Precondition: condition("one")})
	fails(409, anthropic.ErrorTypeMemoryPreconditionFailedError, err)
	_, err = stores.Memories.New(ctx, s.ID, anthropic.BetaMemoryStoreMemoryNewParams{Path: "/b/c.md",
		Content: anthropic.String("")})
	fails(409, anthropic.ErrorTypeMemoryPathConflictError, err)
	for i := range 45 {
		_, err := stores.Memories.New(ctx, s.ID, anthropic.BetaMemoryStoreMemoryNewParams{Path: fmt.Sprint("/many/", i),
			Content: anthropic.String(fmt.Sprint(i))})
		must(err)
	}
	items := func(p anthropic.BetaMemoryStoreMemoryListParams) (list []anthropic.BetaManagedAgentsMemoryListItemUnion) {
		t.Helper()
		pages := stores.Memories.ListAutoPaging(ctx, s.ID, p)
		for pages.Next() {
			list = append(list, pages.Current())
		}
		must(pages.Err())
		return list
	}
	if list := items(anthropic.BetaMemoryStoreMemoryListParams{Limit: anthropic.Int(7)}); len(list) != 46 {
		t.Errorf("%d memories", len(list))
	}
	full := items(anthropic.BetaMemoryStoreMemoryListParams{PathPrefix: anthropic.String("/many/"),
		View: anthropic.BetaManagedAgentsMemoryViewFull})
	if len(full) != 45 || slices.ContainsFunc(full, func(m anthropic.BetaManagedAgentsMemoryListItemUnion) bool {
		return m.AsMemory().Path != "/many/"+m.AsMemory().Content
	}) {
		t.Errorf("%d memories with their contents", len(full))
	}
	var prefixes []string
	for _, item := range items(anthropic.BetaMemoryStoreMemoryListParams{Depth: anthropic.Int(1)}) {
		prefixes = append(prefixes, item.AsMemoryPrefix().Path)
	}
	if !slices.Equal(prefixes, []string{"/b/", "/many/"}) {
		t.Error(prefixes)
	}
	versions := func(p anthropic.BetaMemoryStoreMemoryVersionListParams) (operations []string) {
		t.Helper()
		pages := stores.MemoryVersions.ListAutoPaging(ctx, s.ID, p)
		for pages.Next() {
			v := pages.Current()
			operations = append(operations, string(v.Operation))
			if v.CreatedBy.AsAPIActor().APIKeyID != "laptop" || v.Path == "" && v.RedactedAt.IsZero() {
				t.Errorf("%s", v.RawJSON())
			}
		}
		must(pages.Err())
		return operations
	}
	if list := versions(anthropic.BetaMemoryStoreMemoryVersionListParams{Limit: anthropic.Int(10)}); len(list) != 47 {
		t.Errorf("%d versions", len(list))
	}
	v, err := stores.MemoryVersions.Get(ctx, m.MemoryVersionID,
		anthropic.BetaMemoryStoreMemoryVersionGetParams{MemoryStoreID: s.ID})
	must(err)
	if v.Content != "one" || v.Operation != anthropic.BetaManagedAgentsMemoryVersionOperationCreated ||
		v.MemoryID != m.ID {
		t.Errorf("%s", v.RawJSON())
	}
	v, err = stores.MemoryVersions.Redact(ctx, v.ID,
		anthropic.BetaMemoryStoreMemoryVersionRedactParams{MemoryStoreID: s.ID})
	must(err)
	if v.RedactedAt.IsZero() || v.Content != "" || v.RedactedBy.AsAPIActor().APIKeyID != "laptop" {
		t.Errorf("%s", v.RawJSON())
	}
	_, err = stores.Memories.Delete(ctx, m.ID, anthropic.BetaMemoryStoreMemoryDeleteParams{MemoryStoreID: s.ID,
		ExpectedContentSha256: anthropic.String(hashOf("one"))})
	fails(409, anthropic.ErrorTypeMemoryPreconditionFailedError, err)
	_, err = stores.Memories.Delete(ctx, m.ID, anthropic.BetaMemoryStoreMemoryDeleteParams{MemoryStoreID: s.ID,
		ExpectedContentSha256: anthropic.String(hashOf("two"))})
	must(err)
	operations := versions(anthropic.BetaMemoryStoreMemoryVersionListParams{MemoryID: anthropic.String(m.ID)})
	if slices.Sort(operations); !slices.Equal(operations, []string{"created", "deleted", "modified"}) {
		t.Error(operations)
	}
	s, err = stores.Archive(ctx, s.ID, anthropic.BetaMemoryStoreArchiveParams{})
	must(err)
	if s.ArchivedAt.IsZero() {
		t.Error(s.RawJSON())
	}
	_, err = stores.Memories.New(ctx, s.ID, anthropic.BetaMemoryStoreMemoryNewParams{Path: "/x",
		Content: anthropic.String("")})
	fails(400, anthropic.ErrorTypeInvalidRequestError, err)
	for _, beta := range []anthropic.AnthropicBeta{"managed-agents-2026-04-01", "agent-memory-2026-07-22"} {
		_, err := stores.Get(ctx, s.ID, anthropic.BetaMemoryStoreGetParams{Betas: []anthropic.AnthropicBeta{beta}})
		must(err)
	}
	if names := listed(anthropic.BetaMemoryStoreListParams{}); len(names) != 5 {
		t.Error(names)
	}
	var out strings.Builder
	must(list(ctx, client, &out))
	if !strings.Contains(out.String(), "more 4") {
		t.Error(out.String())
	}
	_, err = stores.Delete(ctx, s.ID, anthropic.BetaMemoryStoreDeleteParams{})
	must(err)
	_, err = stores.Get(ctx, s.ID, anthropic.BetaMemoryStoreGetParams{})
	fails(http.StatusNotFound, anthropic.ErrorTypeNotFoundError, err)
	if trash, err := os.ReadDir(filepath.Join(dir, ".trash")); err != nil || len(trash) != 1 ||
		!strings.HasPrefix(trash[0].Name(), s.ID) {
		t.Error(trash, err)
	}
}

// TestNodeClient calls all methods by the client for Node.
func TestNodeClient(t *testing.T) {
	root := installed(t)
	url, key, _ := serving(t)
	out, err := exec.Command("node", "testdata/drive.mjs", root, url, key).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "all fourteen methods answered") {
		t.Errorf("%v\n%s", err, out)
	}
}

// installed returns a folder of the user's cache in which npm has installed the client. With VARVE_CI a test that
// cannot run fails.
func installed(t *testing.T) string {
	t.Helper()
	skip := t.Skipf
	if os.Getenv("VARVE_CI") != "" {
		skip = t.Fatalf
	}
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			skip("%s is not there: apt-get install nodejs npm", tool)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	parent := filepath.Join(cache, "varve-test")
	root := filepath.Join(parent, strings.NewReplacer("@", "-", "/", "-").Replace("npm"+sdk))
	modules := filepath.Join(root, "node_modules")
	if _, err := os.Stat(modules); err == nil {
		return root
	}
	if err := os.MkdirAll(parent, 0o700); err != nil {
		t.Fatal(err)
	}
	fresh, err := os.MkdirTemp(parent, "installing-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	if err := os.WriteFile(filepath.Join(fresh, "package.json"), []byte(`{"private":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", sdk)
	cmd.Dir = fresh
	if out, err := cmd.CombinedOutput(); err != nil {
		skip("npm cannot install %s here: %v\n%s", sdk, err, out)
	}
	if err := os.Rename(fresh, root); err != nil {
		if _, serr := os.Stat(modules); serr != nil { // another test was not faster
			t.Fatal(err)
		}
	}
	return root
}
