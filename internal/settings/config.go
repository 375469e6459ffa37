package settings

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/template"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/query"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/vector"
)

// Config has the settings of a store that are in its config.json, but not those of a process. A zero field means the
// default. The other files of a store can be decoded without these settings.
type Config struct {
	// Format marks a folder as a store; the member is called "varve".
	Format int `json:"varve"`

	IndexBackupCount *int  `json:"index_backup_count,omitempty"` // number of older indexes that are kept; default 3
	AutoRepair       *bool `json:"auto_repair,omitempty"`        // make cheap repairs at open; default true
	BackupInterval   *int  `json:"backup_interval,omitempty"`    // seconds between two index backups; default 3600
	FlushThreshold   *int  `json:"flush_threshold,omitempty"`    // number of changes that start a flush; default 20
	// deleting a file deletes its document; otherwise the file is restored; default true
	AdoptDeletions *bool `json:"adopt_deletions,omitempty"`
	// patterns of files in notes/ that are not adopted as new notes; nil: IgnoredNotes has the defaults; empty: none
	NotesIgnore []string `json:"notes_ignore,omitzero"`
	// BlockPurged makes putting a text that was purged fail with ErrPurged; default false.
	BlockPurged bool `json:"block_purged,omitempty"`

	// Limits on one document, whether put or edited by hand; stored documents that exceed them can still
	// be read.
	MaxMemoryBytes   int `json:"max_memory_bytes,omitempty"`   // bytes of one memory's JSON; default 16 MiB
	MaxIDBytes       int `json:"max_id_bytes,omitempty"`       // bytes of an id; default 1,024
	MaxDepth         int `json:"max_depth,omitempty"`          // levels of nesting; default 100
	MaxEmbeddingDims int `json:"max_embedding_dims,omitempty"` // numbers of an embedding; default 65,536

	MaxAssemblyMembers int `json:"max_assembly_members,omitempty"` // members of an assembly; default 100,000
	// the half-life of an assembly's activation in seconds; default 86,400
	ActivationHalfLife int `json:"activation_half_life,omitempty"`

	// Limits on the store; 0: none. The documents in the files count, with embeddings, including documents that have
	// expired and are not deleted yet. Derived data (index, vectors), the log, assemblies and working memory do not
	// count. A write that would exceed a limit is refused with ErrLimit, or other memories are deleted for it: see
	// AtLimit. The limits never refuse edits of files by hand, nor data that the store adds to existing memories (a
	// later embedding, Touch): these may exceed a limit, and the next write is refused, or makes room for itself and
	// for these additions.
	MaxMemories        int64 `json:"max_memories,omitempty"`
	MaxBytes           int64 `json:"max_bytes,omitempty"` // bytes of all memories' JSON files
	MaxSessionMemories int64 `json:"max_session_memories,omitempty"`
	MaxSessionBytes    int64 `json:"max_session_bytes,omitempty"`

	AtLimit string `json:"at_limit,omitempty"` // one of the values below; empty means AtLimitRefuse
	// MaxAge is the age in seconds, from its last write, at which a memory is deleted, at most an hour or two later; 0:
	// never. Until then it can be read; only Memory.ExpiresAt hides a memory at once.
	MaxAge int64 `json:"max_age,omitempty"`

	// HistoryBytes and HistoryDays limit the history that the store keeps in addition to its log: copies of old
	// segments. HistoryBytes is their size in bytes; default 256 MiB; 0: no copies are kept.
	HistoryBytes *int64 `json:"history_bytes,omitempty"`
	HistoryDays  int    `json:"history_days,omitempty"` // age in days at which a copy is removed; 0: never
	// UnsentBytes is the number of bytes by which the copies may exceed HistoryBytes while a copy of the store
	// elsewhere lacks them; default 1 GiB; 0: not at all.
	UnsentBytes *int64 `json:"unsent_bytes,omitempty"`

	// BacklogBytes is the number of bytes that the log may be ahead of the files; default 96 MiB. From half of it on
	// writers are slowed down. A higher value allows a longer burst and means a longer recovery, but no higher
	// throughput.
	BacklogBytes int64 `json:"backlog_bytes,omitempty"`

	// TextLanguage is the language whose rules reduce words to their stems for search; empty means "en". After a change
	// the next flush reads the words of all memories again; until then searches use the old words.
	TextLanguage string `json:"text_language,omitempty"`

	Text    *TextConfig   `json:"text,omitempty"`
	Vectors *VectorConfig `json:"vectors,omitempty"`

	// MemoryStore is the description of the store for clients of the Memory Stores API: see package
	// memorystores. Only that API uses it.
	MemoryStore *MemoryStoreConfig `json:"memory_store,omitempty"`
}

// MemoryStoreConfig describes a store to the clients of the Memory Stores API.
type MemoryStoreConfig struct {
	ID          string            `json:"id"`                    // memstore_ and 32 letters and digits
	Name        string            `json:"name"`                  // 1 to 255 characters
	Description string            `json:"description,omitempty"` // at most 1,024 characters
	Metadata    map[string]string `json:"metadata,omitempty"`    // at most 16 pairs
	CreatedAt   time.Time         `json:"created_at,omitzero"`
	// time of the last change of name, description, metadata or archived_at
	UpdatedAt time.Time `json:"updated_at,omitzero"`
	// time at which the store was archived; zero: it is not archived, and the API may write to it
	ArchivedAt time.Time `json:"archived_at,omitzero"`
}

// TextConfig selects the metadata that the search for words uses. A change takes effect in the same way as a change of
// TextLanguage.
type TextConfig struct {
	// Fields maps each field of a query (speaker, caption, title, tag, category, key) to the members of the metadata
	// that have the words of that field. A field that is not in Fields has its default members.
	Fields map[string][]string `json:"fields,omitempty"`
}

// The values of AtLimit: what happens to a write that would exceed a limit.
const (
	AtLimitRefuse      = "refuse"       // the write fails with ErrLimit
	AtLimitEvictOldest = "evict_oldest" // memories that were written longest ago are deleted
	// the memories with the lowest quickrecal_score are deleted; of several with the same score, the oldest first
	AtLimitEvictLowest = "evict_lowest"
)

// VectorConfig sets properties of the vectors that otherwise the first embedding determines. If a store's vectors have
// other properties, the store rebuilds the vectors. An embedding that does not have these properties gets no vector.
type VectorConfig struct {
	Dimension int    `json:"dimension,omitempty"` // numbers of each vector; 0: the number of the first embedding
	Metric    string `json:"metric,omitempty"`    // "ip", the cosine, or "l2"; "ip" when empty
	Model     string `json:"model,omitempty"`     // the name of the model that makes the embeddings
	// the text of a memory that the next re-embedding embeds: "content", "turns", or a text such as "{previous}
	// {speaker}: {content}"; empty: the text that is embedded now; a store's first vectors are made with "turns" if one
	// of them is of a memory in a session, else with "content"
	Template string `json:"template,omitempty"`
	// the text that is embedded for a query, such as "search_query: {query}", as some models need it; empty: the query
	// unchanged; a change applies at once
	QueryTemplate string `json:"query_template,omitempty"`
}

// Name is the name of the settings file in the store's folder.
const Name = "config.json"

const (
	// Format is the version of the file format that this package reads and writes.
	Format = 1
	// Limit is the maximum size of config.json in bytes.
	Limit = 1 << 20

	// HistoryMost is the maximum of history_bytes and unsent_bytes.
	HistoryMost = 1 << 53
	// BackupsMost is the maximum of index_backup_count.
	BackupsMost = 1000

	defaultHistory = 256 << 20
	defaultUnsent  = 1 << 30
	defaultBacklog = 96 << 20
	leastBacklog   = 1 << 20
	mostBacklog    = 1 << 30
)

// Backlog returns the maximum number of bytes of log entries whose documents are not in files yet: BacklogBytes, or
// the default if BacklogBytes is 0.
func (c *Config) Backlog() int64 { return cmp.Or(c.BacklogBytes, defaultBacklog) }

// Language returns TextLanguage, or the default, English, if it is empty.
func (c *Config) Language() string { return cmp.Or(c.TextLanguage, analyzer.English) }

// Sources returns the members of the metadata from which each field of the word index takes its words: those of
// Text.Fields for the fields that it names, and the defaults for the other fields. If Text.Fields is not valid, all
// fields have the defaults.
func (c *Config) Sources() *query.Sources {
	if c.Text != nil && len(c.Text.Fields) > 0 {
		if s, err := query.ReadSources(c.Text.Fields); err == nil {
			return s
		}
	}
	return query.DefaultSources()
}

// Words returns a string that identifies the settings on which the words in the word index depend. If the string
// changes, the words must be computed again.
func (c *Config) Words() string { return c.Language() + " " + c.Sources().Given() }

// VectorSettings returns the settings of the vectors; a zero VectorConfig if c has no such settings.
func (c *Config) VectorSettings() VectorConfig {
	if c.Vectors == nil {
		return VectorConfig{}
	}
	return *c.Vectors
}

// Embedded returns the setting Template in parsed form; nil if it is empty.
func (v VectorConfig) Embedded() (*template.Template, error) {
	if v.Template == "" {
		return nil, nil
	}
	return template.Parse(v.Template)
}

// VectorsModel returns the setting Model of VectorConfig: the name of the model that makes the embeddings. It returns
// "" if this is not set.
func (c Config) VectorsModel() string { return c.VectorSettings().Model }

// Backups returns the number of backups of the index that are kept.
func (c *Config) Backups() int {
	if c.IndexBackupCount == nil {
		return 3
	}
	return *c.IndexBackupCount
}

// MayRepair reports whether the store may restore damaged and missing files by itself (auto_repair).
func (c *Config) MayRepair() bool { return c.AutoRepair == nil || *c.AutoRepair }

// AdoptsDeletions reports whether deleting a file by hand deletes its document.
func (c *Config) AdoptsDeletions() bool { return c.AdoptDeletions == nil || *c.AdoptDeletions }

// BackupEvery returns the time between two backups of the index.
func (c *Config) BackupEvery() time.Duration {
	if c.BackupInterval == nil {
		return time.Hour
	}
	return time.Duration(*c.BackupInterval) * time.Second
}

// FlushAfter returns the number of changes that start a flush.
func (c *Config) FlushAfter() int {
	if c.FlushThreshold == nil {
		return 20
	}
	return *c.FlushThreshold
}

// MemoryLimits returns the limits on one memory.
func (c *Config) MemoryLimits() memstore.Limits {
	return memstore.Limits{
		MemoryBytes: c.MaxMemoryBytes, IDBytes: c.MaxIDBytes, Depth: c.MaxDepth, EmbeddingDim: c.MaxEmbeddingDims,
	}
}

// AssemblyLimits returns the limits on one assembly.
func (c *Config) AssemblyLimits() assembly.Limits {
	return assembly.Limits{
		AssemblyBytes: c.MaxMemoryBytes, IDBytes: c.MaxIDBytes, Depth: c.MaxDepth, EmbeddingDim: c.MaxEmbeddingDims,
		Members: c.MaxAssemblyMembers,
	}
}

// HalfLife returns the half-life of the activations of assemblies: ActivationHalfLife, or the default if that is 0.
func (c *Config) HalfLife() time.Duration {
	if c.ActivationHalfLife == 0 {
		return assembly.DefaultHalfLife
	}
	return time.Duration(c.ActivationHalfLife) * time.Second
}

// Age returns the time from a memory's last write to its deletion; 0 means that memories are not deleted because of
// their age.
func (c *Config) Age() time.Duration { return time.Duration(c.MaxAge) * time.Second }

// History returns the maximum total size in bytes of the copies of old segments, and the age at which a copy is
// removed. If the size is 0 or less, no copies are kept. If the age is 0, copies are not removed because of their age.
// standard is the size to use if history_bytes is not set; if standard is 0, the default of Config is used.
func (c *Config) History(standard int64) (bytes int64, age time.Duration) {
	bytes = cmp.Or(standard, defaultHistory)
	if c.HistoryBytes != nil {
		bytes = *c.HistoryBytes
	}
	return bytes, time.Duration(c.HistoryDays) * 24 * time.Hour
}

// Unsent returns UnsentBytes, or the default if it is nil.
func (c *Config) Unsent() int64 {
	if c.UnsentBytes != nil {
		return *c.UnsentBytes
	}
	return defaultUnsent
}

// WithDefaults returns a copy of c for a new config.json. The settings that users change most (index_backup_count,
// auto_repair, backup_interval, flush_threshold) get their defaults if they are not set, so that the file shows them.
func (c *Config) WithDefaults() *Config {
	d := *c
	backups, repair, interval, threshold := c.Backups(), c.MayRepair(), int(c.BackupEvery().Seconds()), c.FlushAfter()
	d.IndexBackupCount, d.AutoRepair, d.BackupInterval, d.FlushThreshold = &backups, &repair, &interval, &threshold
	return &d
}

// Resolved returns a copy of c in which settings that are not set have their defaults. TextLanguage, AtLimit, Text and
// Vectors stay as they are: their zero values mean the defaults.
func (c Config) Resolved() Config {
	d := *c.WithDefaults()
	l := d.MemoryLimits().Resolved()
	d.MaxMemoryBytes, d.MaxIDBytes, d.MaxDepth, d.MaxEmbeddingDims = l.MemoryBytes, l.IDBytes, l.Depth, l.EmbeddingDim
	d.MaxAssemblyMembers, d.ActivationHalfLife = d.AssemblyLimits().Resolved().Members, int(d.HalfLife().Seconds())
	history, _ := d.History(0)
	unsent := d.Unsent()
	d.HistoryBytes, d.UnsentBytes, d.BacklogBytes = &history, &unsent, d.Backlog()
	d.NotesIgnore = d.IgnoredNotes()
	return d
}

// Validate returns the first invalid setting as a *FieldError, or nil.
func (c *Config) Validate() error {
	bad := func(field string, v int, limit string) error {
		return &errs.FieldError{Field: Name + " " + field, Value: fmt.Sprint(v), Limit: limit, Err: errs.ErrInvalid}
	}
	for _, f := range []struct {
		name     string
		v        *int
		low, top int
	}{
		{"index_backup_count", c.IndexBackupCount, 0, BackupsMost},
		{"backup_interval", c.BackupInterval, 0, 1 << 30},
		{"flush_threshold", c.FlushThreshold, 1, 1 << 30},
		{"max_memory_bytes", &c.MaxMemoryBytes, 0, 256 << 20},
		{"max_id_bytes", &c.MaxIDBytes, 0, 1024},
		{"max_depth", &c.MaxDepth, 0, 1000},
		{"max_embedding_dims", &c.MaxEmbeddingDims, 0, 1 << 20},
		{"max_assembly_members", &c.MaxAssemblyMembers, 0, 1 << 24},
		{"activation_half_life", &c.ActivationHalfLife, 0, 1 << 30},
		{"history_days", &c.HistoryDays, 0, 1 << 16},
	} {
		if f.v != nil && (*f.v < f.low || *f.v > f.top) {
			return bad(f.name, *f.v, fmt.Sprintf("%d to %d", f.low, f.top))
		}
	}
	for _, f := range []struct {
		name   string
		v, top int64
	}{
		{"max_memories", c.MaxMemories, 1 << 53}, {"max_bytes", c.MaxBytes, 1 << 53},
		{"max_session_memories", c.MaxSessionMemories, 1 << 53},
		{"max_session_bytes", c.MaxSessionBytes, 1 << 53}, {"max_age", c.MaxAge, 1 << 33},
	} {
		if f.v < 0 || f.v > f.top {
			return &errs.FieldError{Field: Name + " " + f.name, Value: fmt.Sprint(f.v),
				Limit: fmt.Sprintf("0 (none) to %d", f.top), Err: errs.ErrInvalid}
		}
	}
	if n := c.HistoryBytes; n != nil && (*n < 0 || *n > HistoryMost) {
		return &errs.FieldError{Field: Name + " history_bytes", Value: fmt.Sprint(*n),
			Limit: fmt.Sprintf("0 (only what the log has) to %d", HistoryMost), Err: errs.ErrInvalid}
	}
	if n := c.UnsentBytes; n != nil && (*n < 0 || *n > HistoryMost) {
		return &errs.FieldError{Field: Name + " unsent_bytes", Value: fmt.Sprint(*n),
			Limit: fmt.Sprintf("0 (none) to %d", HistoryMost), Err: errs.ErrInvalid}
	}
	if n := c.BacklogBytes; n != 0 && (n < leastBacklog || n > mostBacklog) {
		return &errs.FieldError{Field: Name + " backlog_bytes", Value: fmt.Sprint(n),
			Limit: fmt.Sprintf("0 (the default), or %d to %d", leastBacklog, mostBacklog), Err: errs.ErrInvalid}
	}
	if err := checkIgnored(c.NotesIgnore); err != nil {
		return err
	}
	if err := c.MemoryStore.validate(); err != nil {
		return err
	}
	switch c.AtLimit {
	case "", AtLimitRefuse, AtLimitEvictOldest, AtLimitEvictLowest:
	default:
		return &errs.FieldError{Field: Name + " at_limit", Value: human.Quote(c.AtLimit),
			Limit: strings.Join([]string{AtLimitRefuse, AtLimitEvictOldest, AtLimitEvictLowest}, ", "), Err: errs.ErrInvalid}
	}
	if all := analyzer.Languages(); c.TextLanguage != "" && !slices.Contains(all, c.TextLanguage) {
		return &errs.FieldError{Field: Name + " text_language", Value: human.Quote(c.TextLanguage),
			Limit: strings.Join(all, ", "), Err: errs.ErrInvalid}
	}
	if c.Text != nil {
		if _, err := query.ReadSources(c.Text.Fields); err != nil {
			return fmt.Errorf("%s text: %w", Name, err)
		}
	}
	if v := c.VectorSettings(); v.Dimension < 0 || v.Dimension > 1<<20 {
		return bad("vectors.dimension", v.Dimension, fmt.Sprintf("%d to %d", 0, 1<<20))
	} else if _, err := vector.ParseMetric(v.Metric); err != nil {
		return fmt.Errorf("%s vectors: %w", Name, err)
	} else if _, err := v.Embedded(); err != nil {
		return fmt.Errorf("%s vectors: %w", Name, err)
	} else if err := template.CheckQuery(v.QueryTemplate); err != nil {
		return fmt.Errorf("%s vectors: %w", Name, err)
	}
	if c.Format > Format {
		return &errs.NewerError{Path: Name, Format: uint64(c.Format), Reads: Format}
	}
	return nil
}

// Clone returns a copy that shares nothing with c.
func (c *Config) Clone() Config {
	d := *c
	for _, p := range []**int{&d.IndexBackupCount, &d.BackupInterval, &d.FlushThreshold} {
		*p = cloned(*p)
	}
	d.AutoRepair, d.AdoptDeletions, d.Vectors, d.HistoryBytes = cloned(c.AutoRepair), cloned(c.AdoptDeletions),
		cloned(c.Vectors), cloned(c.HistoryBytes)
	d.UnsentBytes = cloned(c.UnsentBytes)
	d.NotesIgnore = slices.Clone(c.NotesIgnore)
	if d.MemoryStore = cloned(c.MemoryStore); d.MemoryStore != nil {
		d.MemoryStore.Metadata = maps.Clone(c.MemoryStore.Metadata)
	}
	if d.Text = cloned(c.Text); d.Text != nil {
		fields := map[string][]string{}
		for name, of := range d.Text.Fields {
			fields[name] = slices.Clone(of)
		}
		d.Text.Fields = fields
	}
	return d
}

func cloned[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
