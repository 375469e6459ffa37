package varve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/vector"
)

// Config is what belongs to the store and not to a process: config.json. Zero
// fields mean the default. Nothing that is needed to decode the store is in it.
type Config struct {
	// Format marks a folder as a store; the member is called "varve".
	Format int `json:"varve"`

	IndexBackupCount *int  `json:"index_backup_count,omitempty"` // older indexes that are kept: 3
	AutoRepair       *bool `json:"auto_repair,omitempty"`        // heal at open what costs little: true
	BackupInterval   *int  `json:"backup_interval,omitempty"`    // seconds between two index backups: 3600
	FlushThreshold   *int  `json:"flush_threshold,omitempty"`    // changes that start a flush: 20
	AdoptDeletions   *bool `json:"adopt_deletions,omitempty"`    // while somebody watches, deleting a file deletes what it holds: true

	MaxMemoryBytes   int `json:"max_memory_bytes,omitempty"`   // of one memory's JSON: 16 MiB
	MaxIDBytes       int `json:"max_id_bytes,omitempty"`       // 1,024
	MaxDepth         int `json:"max_depth,omitempty"`          // of nesting: 100
	MaxEmbeddingDims int `json:"max_embedding_dims,omitempty"` // 65,536

	MaxAssemblyMembers int `json:"max_assembly_members,omitempty"` // 100,000
	ActivationHalfLife int `json:"activation_half_life,omitempty"` // seconds in which an assembly's activation fades to half: 86,400

	// What the store may hold, 0: as much as there is room for. What stands in the
	// files counts, also what has expired and is not deleted yet. A write that would
	// pass a limit is refused with ErrLimit, or others make room: see AtLimit.
	MaxMemories        int64 `json:"max_memories,omitempty"`
	MaxBytes           int64 `json:"max_bytes,omitempty"` // of all memories' JSON
	MaxSessionMemories int64 `json:"max_session_memories,omitempty"`
	MaxSessionBytes    int64 `json:"max_session_bytes,omitempty"`

	AtLimit string `json:"at_limit,omitempty"` // AtLimitRefuse when empty
	// MaxAge is how many seconds after its last write a memory is deleted, 0: never. See
	// the package's comment for when.
	MaxAge int64 `json:"max_age,omitempty"`

	Vectors *VectorConfig `json:"vectors,omitempty"`
}

// What happens to a write that would pass a limit.
const (
	AtLimitRefuse      = "refuse"       // ErrLimit
	AtLimitEvictOldest = "evict_oldest" // those go that were written longest ago
	AtLimitEvictLowest = "evict_lowest" // those of the lowest quickrecal_score go, of several the oldest
)

// VectorConfig fixes what is otherwise decided by the first embedding. A store
// whose vectors are others makes them anew; embeddings that do not fit have none.
type VectorConfig struct {
	Dimension int    `json:"dimension,omitempty"` // 0: that of the first embedding
	Metric    string `json:"metric,omitempty"`    // "ip", the cosine, or "l2"; "ip" when empty
	Model     string `json:"model,omitempty"`     // what makes the embeddings, for those who read it
}

func (c *Config) vectors() VectorConfig {
	if c.Vectors == nil {
		return VectorConfig{}
	}
	return *c.Vectors
}

func (c Config) vectorsModel() string { return c.vectors().Model }

const (
	configName   = "config.json"
	configFormat = 1
	configLimit  = 1 << 20
)

func (c *Config) backups() int {
	if c.IndexBackupCount == nil {
		return 3
	}
	return *c.IndexBackupCount
}

func (c *Config) autoRepair() bool { return c.AutoRepair == nil || *c.AutoRepair }

func (c *Config) adoptDeletions() bool { return c.AdoptDeletions == nil || *c.AdoptDeletions }

func (c *Config) backupInterval() time.Duration {
	if c.BackupInterval == nil {
		return time.Hour
	}
	return time.Duration(*c.BackupInterval) * time.Second
}

func (c *Config) flushThreshold() int {
	if c.FlushThreshold == nil {
		return 20
	}
	return *c.FlushThreshold
}

func (c *Config) limits() memstore.Limits {
	return memstore.Limits{
		MemoryBytes: c.MaxMemoryBytes, IDBytes: c.MaxIDBytes, Depth: c.MaxDepth, EmbeddingDim: c.MaxEmbeddingDims,
	}
}

func (c *Config) assemblyLimits() assembly.Limits {
	return assembly.Limits{
		AssemblyBytes: c.MaxMemoryBytes, IDBytes: c.MaxIDBytes, Depth: c.MaxDepth, EmbeddingDim: c.MaxEmbeddingDims, Members: c.MaxAssemblyMembers,
	}
}

func (c *Config) halfLife() time.Duration {
	if c.ActivationHalfLife == 0 {
		return assembly.DefaultHalfLife
	}
	return time.Duration(c.ActivationHalfLife) * time.Second
}

func (st *Store) maxAge() time.Duration {
	st.config.mu.Lock()
	defer st.config.mu.Unlock()
	return time.Duration(st.config.c.MaxAge) * time.Second
}

// Resolved is the configuration with every default spelt out.
func (c Config) Resolved() Config {
	d := *c.withDefaults()
	l := d.limits().Resolved()
	d.MaxMemoryBytes, d.MaxIDBytes, d.MaxDepth, d.MaxEmbeddingDims = l.MemoryBytes, l.IDBytes, l.Depth, l.EmbeddingDim
	d.MaxAssemblyMembers, d.ActivationHalfLife = d.assemblyLimits().Resolved().Members, int(d.halfLife().Seconds())
	return d
}

// Validate says what is wrong, as a *FieldError.
func (c *Config) Validate() error {
	bad := func(field string, v int, limit string) error {
		return &FieldError{Field: configName + " " + field, Value: fmt.Sprint(v), Limit: limit, Err: ErrInvalid}
	}
	for _, f := range []struct {
		name     string
		v        *int
		low, top int
	}{
		{"index_backup_count", c.IndexBackupCount, 0, 1000},
		{"backup_interval", c.BackupInterval, 0, 1 << 30},
		{"flush_threshold", c.FlushThreshold, 1, 1 << 30},
		{"max_memory_bytes", &c.MaxMemoryBytes, 0, 256 << 20},
		{"max_id_bytes", &c.MaxIDBytes, 0, 1024},
		{"max_depth", &c.MaxDepth, 0, 1000},
		{"max_embedding_dims", &c.MaxEmbeddingDims, 0, 1 << 20},
		{"max_assembly_members", &c.MaxAssemblyMembers, 0, 1 << 24},
		{"activation_half_life", &c.ActivationHalfLife, 0, 1 << 30},
	} {
		if f.v != nil && (*f.v < f.low || *f.v > f.top) {
			return bad(f.name, *f.v, fmt.Sprintf("%d to %d", f.low, f.top))
		}
	}
	for _, f := range []struct {
		name string
		v    int64
	}{
		{"max_memories", c.MaxMemories}, {"max_bytes", c.MaxBytes}, {"max_session_memories", c.MaxSessionMemories},
		{"max_session_bytes", c.MaxSessionBytes}, {"max_age", c.MaxAge},
	} {
		if f.v < 0 || f.v > 1<<53 {
			return &FieldError{Field: configName + " " + f.name, Value: fmt.Sprint(f.v), Limit: fmt.Sprintf("0 (none) to %d", int64(1)<<53), Err: ErrInvalid}
		}
	}
	if c.MaxAge > 1<<33 {
		return &FieldError{Field: configName + " max_age", Value: fmt.Sprint(c.MaxAge), Limit: fmt.Sprintf("%d seconds", int64(1)<<33), Err: ErrInvalid}
	}
	switch c.AtLimit {
	case "", AtLimitRefuse, AtLimitEvictOldest, AtLimitEvictLowest:
	default:
		return &FieldError{Field: configName + " at_limit", Value: quote(c.AtLimit), Limit: strings.Join([]string{AtLimitRefuse, AtLimitEvictOldest, AtLimitEvictLowest}, ", "), Err: ErrInvalid}
	}
	if v := c.vectors(); v.Dimension < 0 || v.Dimension > 1<<20 {
		return bad("vectors.dimension", v.Dimension, fmt.Sprintf("%d to %d", 0, 1<<20))
	} else if _, err := vector.ParseMetric(v.Metric); err != nil {
		return fmt.Errorf("%s vectors: %w", configName, err)
	}
	if c.Format > configFormat {
		return fmt.Errorf("%s: format %d, this program reads up to %d: %w", configName, c.Format, configFormat, ErrNewerFormat)
	}
	return nil
}

var errNoMember = errors.New(`it has no member "varve", so this folder is somebody else's`)

// readConfig reads config.json. A file of somebody else is errNoMember, a
// missing one fs.ErrNotExist.
func readConfig(fsys vfs.FS, dir string) (*Config, vfs.Info, error) {
	name := filepath.Join(dir, configName)
	info, err := fsys.Stat(name)
	if err != nil {
		return nil, info, err
	}
	b, err := vfs.ReadFile(fsys, name, configLimit)
	if err != nil {
		return nil, info, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(b, &members); err != nil {
		return nil, info, fmt.Errorf("%s: %w: %w", name, ErrInvalid, err)
	}
	if _, ok := members["varve"]; !ok {
		return nil, info, fmt.Errorf("%s: %w", name, errNoMember)
	}
	c := new(Config)
	if err := json.Unmarshal(b, c); err != nil {
		return nil, info, fmt.Errorf("%s: %w: %w", name, ErrInvalid, err)
	}
	return c, info, c.Validate()
}

// writeConfig makes config.json durable. Members that this program does not
// know stay as they are. temp is a name that nobody else uses.
func writeConfig(fsys vfs.FS, dir, temp string, c *Config, mode fs.FileMode) error {
	name := filepath.Join(dir, configName)
	members := map[string]json.RawMessage{}
	if b, err := vfs.ReadFile(fsys, name, configLimit); err == nil {
		if err := json.Unmarshal(b, &members); err != nil {
			return fmt.Errorf("%s: %w: %w", name, ErrInvalid, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	for name := range configMembers() {
		delete(members, name) // one that is left out has its default
	}
	if err := json.Unmarshal(b, &members); err != nil {
		return err
	}
	if b, err = json.MarshalIndent(members, "", "  "); err != nil {
		return err
	}
	return vfs.WriteDurable(fsys, temp, name, append(b, '\n'), mode)
}

// configMembers are the names of the members of Config.
func configMembers() map[string]bool {
	names := map[string]bool{}
	t := reflect.TypeFor[Config]()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names[name] = true
	}
	return names
}

// Config is the store's configuration as last read. It is read again when the
// file's size or time changes; an invalid one is reported and the last good one
// holds.
func (st *Store) Config() Config {
	st.config.mu.Lock()
	defer st.config.mu.Unlock()
	return *st.config.c
}

// SetConfig writes config.json. Other processes read it within a second.
func (st *Store) SetConfig(c Config) error {
	if st.o.ReadOnly {
		return ErrReadOnly
	}
	c.Format = configFormat
	if err := c.Validate(); err != nil {
		return err
	}
	// Not two at a time: members that one does not know would be lost.
	if err := st.log.LockFlush(context.Background()); err != nil {
		return err
	}
	defer st.log.UnlockFlush()
	temp, err := st.scratch(configName)
	if err != nil {
		return err
	}
	if err := writeConfig(st.fs, st.dir, temp, &c, st.o.FileMode); err != nil {
		return st.ioError("writing", filepath.Join(st.dir, configName), err)
	}
	st.rereadConfig()
	return nil
}

// rereadConfig looks whether config.json has changed.
func (st *Store) rereadConfig() {
	info, err := st.fs.Stat(filepath.Join(st.dir, configName))
	st.config.mu.Lock()
	defer st.config.mu.Unlock()
	if err != nil || info.Size == st.config.info.Size && info.Mtime.Equal(st.config.info.Mtime) {
		return
	}
	c, info, err := readConfig(st.fs, st.dir)
	st.config.info = info
	st.config.err = err
	if err != nil {
		st.o.Logger.Warn("config.json is not valid; the last good one holds", "err", err)
		st.event(Event{Kind: EventConfig, Path: configName, Err: err})
		return
	}
	st.config.c = c
	st.limited.Store(c.storeLimits())
}
