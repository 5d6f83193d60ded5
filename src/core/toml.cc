#include "core/toml.h"

#include <exception>
#include <string>
#include <string_view>

/* toml++ 3.3 asserts the digits of a time ("1979-05-27Tx"), and right after refuses it well. */
#undef NDEBUG
#define TOML_ASSERT(condition) static_assert(true)
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

extern "C" {
#include "core/error.h"
}

/* Return a value as JSON (a new reference). Return NULL for values that JSON lacks: our keys allow
 * no tables, dates, infinities or zero bytes in strings. */
static json_t *to_json(const toml::node &node)
{
    if (const auto *text = node.as_string())
        return text->get().find('\0') == std::string::npos ? json_string(text->get().c_str())
                                                           : nullptr;
    if (const auto *number = node.as_integer())
        return json_integer(number->get());
    if (const auto *number = node.as_floating_point())
        return json_real(number->get());
    if (const auto *flag = node.as_boolean())
        return json_boolean(flag->get());
    if (!node.is_array())
        return nullptr;
    json_t *values = json_array();
    for (const toml::node &value : *node.as_array())
        if (json_array_append_new(values, to_json(value))) {
            json_decref(values);
            return nullptr;
        }
    return values;
}

static std::string problem_of(const std::string &name, const toml::node &node)
{
    if (node.is_table())
        return "table " + name + " (expected options outside of tables)";
    return name +
           ": a date, a time or another value that options do not have (expected a string, a "
           "finite number, true or false)";
}

/* Add all keys and their lines. Return 0 or a negative code. */
static int add_keys(const toml::table &table, const char *source, json_t *object, json_t *lines)
{
    for (const auto &[key, node] : table) {
        const std::string name{key.str()};
        const int line = (int)node.source().begin.line;
        if (name.find('\0') != std::string::npos ||
            json_object_set_new(object, name.c_str(), to_json(node)) ||
            json_object_set_new(lines, name.c_str(), json_integer(line)))
            return sl_error(SL_ERR_DATA, "%s, line %d: %s", source, line,
                            problem_of(name, node).c_str());
    }
    return 0;
}

json_t *sl_toml_read(const char *text, size_t length, const char *source, json_t **lines)
{
    int code;
    json_t *object = json_object();
    *lines = json_object();
    try {
        code = add_keys(toml::parse(std::string_view(text, length)), source, object, *lines);
    } catch (const toml::parse_error &error) {
        code = sl_error(SL_ERR_DATA, "%s, line %d: %s (expected TOML)", source,
                        (int)error.source().begin.line, error.what());
    } catch (const std::exception &error) {
        code = sl_error(SL_ERR_SYSTEM, "%s: %s", source, error.what());
    }
    if (!code)
        return object;
    json_decref(object);
    json_decref(*lines);
    *lines = nullptr;
    return nullptr;
}
