package varve

// Fill sets the defaults of options that are not set, for tests of package varve_test.
func (o *Options) Fill() { o.fill() }
