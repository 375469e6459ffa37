package varve

import (
	"reflect"
	"testing"

	"github.com/varve-db/varve/internal/settings"
)

// TestConfigFields verifies that the public Config and the one of package settings have the same members, and that none
// is lost in the conversion.
func TestConfigFields(t *testing.T) {
	t.Parallel()
	public, inner := reflect.TypeFor[Config](), reflect.TypeFor[settings.Config]()
	if public.NumField() != inner.NumField() {
		t.Fatalf("%d fields, and %d in package settings", public.NumField(), inner.NumField())
	}
	full := reflect.New(public).Elem()
	for i := range public.NumField() {
		p, q := public.Field(i), inner.Field(i)
		if p.Name != q.Name || p.Tag != q.Tag {
			t.Errorf("%s %s is %s %s in package settings", p.Name, p.Tag, q.Name, q.Tag)
		}
		f := full.Field(i)
		switch {
		case f.CanInt():
			f.SetInt(int64(i + 1))
		case f.Kind() == reflect.Slice:
			f.Set(reflect.MakeSlice(p.Type, 1, 1))
		case f.Kind() == reflect.String:
			f.SetString(p.Name)
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		default:
			f.Set(reflect.New(p.Type.Elem()))
		}
	}
	c := full.Interface().(Config)
	in := c.toSettings()
	for i := range inner.NumField() {
		if reflect.ValueOf(in).Elem().Field(i).IsZero() {
			t.Errorf("%s is lost on the way in", inner.Field(i).Name)
		}
	}
	if back := configOf(in); !reflect.DeepEqual(back, c) {
		t.Errorf("%+v comes back as %+v", c, back)
	}
}
