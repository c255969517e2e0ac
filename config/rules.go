package config

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
)

// maxList limits the elements of an array or a table. Some are looked at for each request, or in each version.
const maxList = 1000

// field checks the value of a key by its tags.
func (d *decoder) field(f field) {
	switch v := f.value.Interface().(type) {
	case string:
		d.text(f, f.key, v)
	case []string:
		d.size(f, len(v))
		for i, element := range v {
			d.text(f, f.key, element)
			if slices.Contains(v[:i], element) {
				d.warn(f.key, "%q is there twice", element)
			}
		}
	case map[string]string:
		d.size(f, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			d.text(f, join(f.key, name), v[name])
		}
	case int, float64, Size, Rate, time.Duration:
		d.limits(f)
		if memory := machineMemory(); f.tag.Get("fits") == "memory" && memory > 0 && number(f.value) > float64(memory) {
			d.warn(f.key, "%s is more than the %s of memory of this machine or its container", f.value, memory)
		}
	}
}

func (d *decoder) size(f field, elements int) {
	if elements > maxList {
		d.problem(f.key, "has %d entries, more than %d", elements, maxList)
	}
}

// text checks a text. An empty one is the same as none, if there is no default.
func (d *decoder) text(f field, key, v string) {
	_, inList := f.value.Interface().([]string)
	if v == "" && !inList && !f.is("required") && f.tag.Get("default") == "" {
		return
	}
	if err := f.checkText(v); err != nil {
		d.problem(key, "%v", err)
	}
}

// checkText checks a text by the tags oneof and form.
func (f field) checkText(v string) error {
	if words := strings.Fields(f.tag.Get("oneof")); len(words) > 0 && !slices.Contains(words, v) {
		return fmt.Errorf("%q is none of %s", v, strings.Join(words, ", "))
	}
	if form, ok := forms[f.tag.Get("form")]; ok {
		return form(v)
	}
	return nil
}

// limits checks a number by the tags min, max and zero.
func (d *decoder) limits(f field) {
	v, least, most := number(f.value), f.limit("min"), f.limit("max")
	if v == 0 && f.is("zero") || v >= least && v <= most {
		return
	}
	or := ""
	if f.is("zero") {
		or = "0 or "
	}
	if f.tag.Get("max") == "" {
		d.problem(f.key, "must be %sat least %s, not %v", or, f.tag.Get("min"), f.value)
		return
	}
	d.problem(f.key, "must be %sfrom %s to %s, not %v", or, f.tag.Get("min"), f.tag.Get("max"), f.value)
}

func number(v reflect.Value) float64 {
	if v.CanInt() {
		return float64(v.Int())
	}
	return v.Float()
}

func (f field) limit(tag string) float64 {
	if text := f.tag.Get(tag); text != "" {
		return number(f.parse(text))
	}
	return map[string]float64{"min": math.Inf(-1), "max": math.Inf(1)}[tag]
}

func (f field) parse(in string) reflect.Value {
	v := reflect.New(f.value.Type())
	if err := convert(text(in), v.Interface()); err != nil {
		panic(fmt.Sprintf("%s: %v", in, err)) // tests check all tags
	}
	return v.Elem()
}
