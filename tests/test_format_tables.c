/* Folders of tables: CSV node tables and features as LIBSVM has them. Real graphs against their
 * directories of arrays, small ones against what they say, malformed ones against the sentence that
 * refuses them. */
#include "format_files.h"

#include <math.h>

/* ---- A node table ---- */

static const struct good_file table[] = {
    {"nodes.csv", "id,age,\"height, m\",name,label,split\n"
                  "anna,31,1.5,\"An, \"\"na\"\"\nlong\",old,train\n"
                  "bert,-2,1e-3,Bert,young,val\n"
                  "carl,0.1,3,,old,\n"
                  "dora,4,5,Dora,,test\n"},
    {"edges.csv",
     "source,target\nanna,bert\nbert,anna\nbert,carl\ncarl,bert\ncarl,dora\ndora,carl\n"},
};

#define HEADER "id,age,label,split\n"

static const struct bad_file bad_tables[] = {
    {"nodes.csv", "", "is empty, expected a header"},
    {"nodes.csv", HEADER, "has a header alone"},
    {"nodes.csv", "anna,31,old,train\nbert,2,old,val\n", "no column is called id, node or vertex"},
    {"nodes.csv", "id,age,age\nanna,1,2\n", "line 1: columns 'age' and 'age', expected one"},
    {"nodes.csv", "id,node,age\nanna,1,2\n", "line 1: columns 'id' and 'node', expected one"},
    {"nodes.csv", "id,label,class\nanna,1,2\n", "columns 'label' and 'class', expected one"},
    {"nodes.csv", "id,,label\nanna,1,2\n", "line 1: column 2 has no name"},
    {"nodes.csv", HEADER "anna,1,old,train\nbert,2,old\n", "line 3 has 3 columns, expected 4"},
    {"nodes.csv", HEADER "anna,1,old,train\nbert,2,old,val,9\n", "line 3 has 5 columns"},
    {"nodes.csv", HEADER "anna,1,old,train\nanna,2,old,val\n",
     "line 3: vertex 'anna' is there twice"},
    {"nodes.csv", HEADER "anna,1,old,train\n,2,old,val\n", "line 3: the vertex has no id"},
    {"nodes.csv", HEADER "anna,1,old,train\nbert,x,old,val\n",
     "line 3, column 'age': 'x' is no finite"},
    {"nodes.csv", HEADER "anna,1,old,train\nbert,nan,old,val\n",
     "line 3, column 'age': 'nan' is no"},
    {"nodes.csv", HEADER "anna,1,old,train\nbert,inf,old,val\n",
     "line 3, column 'age': 'inf' is no"},
    {"nodes.csv", HEADER "anna,1,old,train\nbert,,old,val\n",
     "line 3, column 'age': '' is no finite number (starling convert --empty-cells mean"},
    {"nodes.csv", HEADER "anna,,old,train\nbert,1,old,val\n", "line 2, column 'age': '' is no"},
    {"nodes.csv", HEADER "anna,1,old,train\nbert,1e39,old,val\n", "column 'age': '1e39' is no"},
    {"nodes.csv", HEADER "anna,1,old,train\nbert,2,old,dev\n", "column 'split': 'dev' is no split"},
    {"nodes.csv", "id,train_mask\nanna,1\nbert,maybe\n", "column 'train_mask': 'maybe' is no mask"},
    {"nodes.csv", "id,train_mask,test_mask\nanna,1,1\n", "line 2: vertex 'anna' is in two splits"},
    {"nodes.csv", HEADER "anna,1,\"old,train\nbert,2,old,val\n", "line 2: a quote has no end"},
    {"nodes.csv", HEADER "anna,1,\"old\"er,train\n", "line 2: field 3 goes on after its quote"},
    {"nodes.csv", "id,x\nanna,\"0,5\"\n",
     "column 'x': '0,5' is no number, expected a decimal point"},
    {"nodes.csv", "id,label\nanna,0\nbert,-5\ncarl,0\ndora,0\n",
     "label -5 of vertex 1 is no class"},
    {"edges.csv", "", NULL},
    {"edges.csv", "anna,bert\nbert,emil\n", "line 2: 'emil' is no vertex, expected one of "},
    {"edges.csv", "anna,bert\nbert,-1\n", "line 2: '-1' is no vertex, expected one of "},
    {"edges.csv", "anna,bert\nbert\n", "line 2 has 1 columns, expected 2"},
    {"edges.csv", "anna,bert,1\nbert,anna,x\n", "line 2: weight 'x' is no finite number"},
    {"edges.csv", "anna,bert\nbert,\n", "line 2: '' is no vertex"},
    {"labels.csv", "anna,old\n", "has labels, too, expected one"},
    {"features.txt", "anna 1:2\n", "has features, too, expected one"},
    {"train.csv", "anna\n", "has splits, too, expected one"},
};

/* The sentence names the folder. */
static const struct bad_file bad_folders[] = {
    {"edges.csv", NULL, "expected a file edges.csv"},
    {"more_edges.csv", "anna,bert\n", "has two files of edges"},
    {"nodes.tsv", "id\tage\nanna\t1\n", "has two files of vertices"},
};

static const char *make_table(const struct files *files, const char *name)
{
    return format_folder(files, name, table, COUNT(table));
}

static void test_bad_tables(void **state)
{
    format_malformed(*state, "table", make_table, bad_tables, COUNT(bad_tables));
    for (size_t k = 0; k < COUNT(bad_folders); k++) {
        char name[32];
        snprintf(name, sizeof name, "folder%zu", k);
        const char *folder = make_table(*state, name);
        format_file(folder, bad_folders[k].file, bad_folders[k].text);
        format_refused(folder, name, bad_folders[k].phrase);
    }
}

static void test_table(void **state)
{
    const struct files *files = *state;
    static const float features[] = {31, 1.5f, -2, 1e-3f, 0.1f, 3, 4, 5};
    static const int32_t indices[] = {1, 0, 2, 1, 3, 2}, labels[] = {0, 1, 0, -1};
    struct sl_dataset data;
    open_ok(format_folder(files, "people", table, COUNT(table)), &data);
    assert_int_equal(data.vertices, 4);
    assert_true(data.symmetric);
    assert_memory_equal(data.adjacency.indices, indices, sizeof indices);
    assert_int_equal(data.features, 2);
    assert_memory_equal(data.features_dense, features, sizeof features);
    assert_memory_equal(data.labels, labels, sizeof labels);
    assert_string_equal(data.meaning.class_names[0], "old");
    assert_string_equal(data.meaning.class_names[1], "young");
    assert_int_equal(data.train.ids[0], 0);
    assert_int_equal(data.val.ids[0], 1);
    assert_int_equal(data.test.ids[0], 3);
    char name[64];
    assert_int_equal(sl_npy_text(&data.vertex_ids, 2, name), 4);
    assert_memory_equal(name, "carl", 4);
    assert_round_trip(files, &data);
    sl_dataset_close(&data);
}

/* ---- What options make of columns ---- */

static const struct good_file rich[] = {
    {"nodes.csv", "id,income,city,age,class,zip,empty\n"
                  "a,,rome,31,x,7,\n"
                  "b,100,bern,,y,10,\n"
                  "c,300,None,50,x,7,\n"
                  "d,50,rome,NaN,y,7,\n"},
    {"edges.csv", "a,b\nb,c\nc,d\nd,a\n"},
};

static void open_rich(const struct files *files, const char *name,
                      const struct sl_read_options *options, struct sl_dataset *data)
{
    if (sl_dataset_open_with(format_folder(files, name, rich, COUNT(rich)), options, data) != SL_OK)
        fail_msg("%s", sl_error_message());
}

static void refuse_rich(const struct files *files, const char *name,
                        const struct sl_read_options *options, int code, const char *phrase)
{
    struct sl_dataset data;
    assert_int_equal(
        sl_dataset_open_with(format_folder(files, name, rich, COUNT(rich)), options, &data), code);
    if (!strstr(sl_error_message(), phrase))
        fail_msg("\"%s\" lacks \"%s\"", sl_error_message(), phrase);
}

/* Words become columns of 0 and 1 in the order of the words; empty numbers become means. */
static void test_columns(void **state)
{
    static const float features[] = {150, 0, 0, 1, 31, 0, 1, 100, 0, 1, 0, 40.5f, 1, 0,
                                     300, 1, 0, 0, 50, 0, 1, 50,  0, 0, 1, 40.5f, 0, 1};
    static const char *const names[] = {"income", "city=None", "city=bern", "city=rome",
                                        "age",    "zip=10",    "zip=7"};
    static const float numbers[] = {150, 31, 7, 100, 40.5f, 10, 300, 50, 7, 50, 40.5f, 7};
    const struct sl_read_options options = {.categorical = "zip,city", .empty_means = true};
    const struct sl_read_options plain = {.empty_means = true};
    struct sl_dataset data;
    open_rich(*state, "rich", &options, &data);
    assert_int_equal(data.features, 7);
    assert_int_equal(data.feature_form, SL_FEATURES_DENSE);
    assert_memory_equal(data.features_dense, features, sizeof features);
    for (int c = 0; c < 7; c++)
        assert_string_equal(data.columns.names[c], names[c]);
    assert_null(data.columns.names[7]);
    assert_int_equal(data.classes, 2);
    assert_round_trip(*state, &data);
    sl_dataset_close(&data);
    open_rich(*state, "numbers", &plain, &data);
    assert_int_equal(data.features, 3);
    assert_memory_equal(data.features_dense, numbers, sizeof numbers);
    sl_dataset_close(&data);
}

/* A column of any name is the label; the one that would have been is not. */
static void test_label_column(void **state)
{
    static const int32_t labels[] = {1, 0, -1, 1};
    const struct sl_read_options city = {.label = "city", .empty_means = true};
    const struct sl_read_options income = {.label = "income", .empty_means = true};
    struct sl_dataset data;
    open_rich(*state, "city", &city, &data);
    assert_memory_equal(data.labels, labels, sizeof labels);
    assert_string_equal(data.meaning.class_names[1], "rome");
    assert_int_equal(data.features, 3); /* class has words */
    sl_dataset_close(&data);
    open_rich(*state, "income", &income, &data);
    assert_string_equal(data.columns.names[0], "age");
    assert_int_equal(data.features, 2);
    sl_dataset_close(&data);
    const struct sl_read_options no_label = {.label = "town"}, no_column = {.categorical = "zip,x"};
    refuse_rich(*state, "town", &no_label, SL_ERR_DATA, "--label: no column is called 'town'");
    const struct sl_read_options both = {.label = "city", .categorical = "zip,city"};
    refuse_rich(*state, "both", &both, SL_ERR_USAGE, "--label and --categorical both name 'city'");
    refuse_rich(*state, "x", &no_column, SL_ERR_DATA, "--categorical: no column is called 'x'");
    const char *edges = files_text(*state, "plain.csv", "0,1\n1,0\n");
    assert_int_equal(sl_dataset_open_with(edges, &no_column, &data), SL_ERR_USAGE);
    assert_non_null(strstr(sl_error_message(), "expected no --categorical"));
    static const struct good_file lines[] = {{"labels.csv", "a,0\nb,1\n"}, {"edges.csv", "a,b\n"}};
    assert_int_equal(
        sl_dataset_open_with(format_folder(*state, "lines", lines, COUNT(lines)), &no_label, &data),
        SL_ERR_USAGE);
    assert_non_null(strstr(sl_error_message(), "has no table of vertices"));
}

/* A column of too many words is a slip: it would fill the memory. */
static void test_many_words(void **state)
{
    static char text[40000];
    size_t used = (size_t)snprintf(text, sizeof text, "id,name\n");
    for (int v = 0; v < 1001; v++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%d,name%d\n", v, v);
    const struct good_file files[] = {{"nodes.csv", text}, {"edges.csv", "0,1\n"}};
    const struct sl_read_options options = {.categorical = "name"};
    struct sl_dataset data;
    assert_int_equal(
        sl_dataset_open_with(format_folder(*state, "many", files, COUNT(files)), &options, &data),
        SL_ERR_DATA);
    assert_non_null(strstr(sl_error_message(), "line 1002, column 'name': 'name1000' is one of "
                                               "more than 1000 values"));
}

/* Numbers of their own for ids, masks, numbers for labels, tabs, and weights, gzipped. */
static void test_forms(void **state)
{
    static const struct good_file forms[] = {
        {"my_nodes.tsv.gz", "vertex\ttrain_mask\tval_mask\tclass\tx\r\n"
                            "70\t1\t0\t2\t5\r\n60\tfalse\tTrue\t0\t6\r\n50\t\t0\t\t7\r\n"},
        {"my_edges.txt.gz", "70 60 2.5\n60 70 2.5\n"},
    };
    static const int32_t labels[] = {2, 0, -1};
    struct sl_dataset data;
    open_ok(format_folder(*state, "forms", forms, COUNT(forms)), &data);
    assert_int_equal(data.vertices, 3);
    assert_int_equal(sl_npy_integer(&data.vertex_ids, 1), 60);
    assert_true(data.adjacency.values[0] == 2.5f);
    assert_memory_equal(data.labels, labels, sizeof labels);
    assert_int_equal(data.classes, 3);
    assert_int_equal(data.train.count, 1);
    assert_int_equal(data.val.ids[0], 1);
    assert_true(data.features_dense[2] == 7.0f);
    sl_dataset_close(&data);
}

/* Words for no label, numbers of rows, names with blanks everywhere, marks of byte order. */
static void test_missing(void **state)
{
    static const char *const words[] = {"", "NaN", "nan", "NA", "N/A", "None", "null", "NULL", "?"};
    for (size_t k = 0; k < COUNT(words); k++) {
        char name[32], nodes[160];
        snprintf(name, sizeof name, "missing%zu", k);
        snprintf(nodes, sizeof nodes,
                 "\xEF\xBB\xBF,id,f,label\n0,\"New York\",1,a\n1,Boston,2,b\n2,Chicago,3,%s\n",
                 words[k]);
        const struct good_file files[] = {
            {"nodes.csv", nodes},
            {"edges.csv", "source,target\n\"New York\",Boston\n"},
            {"train.txt", "\xEF\xBB\xBFNew York\n"},
        };
        static const int32_t labels[] = {0, 1, -1};
        struct sl_dataset data;
        open_ok(format_folder(*state, name, files, COUNT(files)), &data);
        assert_memory_equal(data.labels, labels, sizeof labels);
        assert_int_equal(data.classes, 2);
        assert_int_equal(data.features, 1);
        assert_int_equal(entries(&data), 1);
        assert_int_equal(data.train.ids[0], 0);
        sl_dataset_close(&data);
    }
}

/* A first line of labels is a header where numbers follow a word. */
static void test_label_headers(void **state)
{
    static const char *const texts[] = {"node,label\n0,b\n1,a\n", "paper,topic\n0,b\n1,a\n",
                                        "0,b\n1,a\n", "paper,label\n0,b\n1,a\n"};
    for (size_t k = 0; k < COUNT(texts); k++) {
        char name[32];
        snprintf(name, sizeof name, "header%zu", k);
        const struct good_file files[] = {{"labels.csv", texts[k]}, {"edges.csv", "0,1\n"}};
        struct sl_dataset data;
        open_ok(format_folder(*state, name, files, COUNT(files)), &data);
        assert_int_equal(data.vertices, 2);
        assert_int_equal(data.labels[0], 1);
        assert_null(data.vertex_ids.data);
        sl_dataset_close(&data);
    }
}

/* Several labels where a separator says so, else one. */
static void test_several(void **state)
{
    static const struct good_file files[] = {
        {"nodes.csv", "id,label\n0,b|a\n1,a\n2,\n3, c | a \n"},
        {"edges.csv", "0,1\n1,2\n"},
    };
    static const float several[] = {1, 1, 0, 1, 0, 0, NAN, NAN, NAN, 1, 0, 1};
    const char *folder = format_folder(*state, "several", files, COUNT(files));
    const struct sl_read_options apart = {.label_separator = '|'};
    struct sl_dataset data;
    open_ok(folder, &data);
    assert_int_equal(data.classes, 3);
    assert_string_equal(data.meaning.class_names[1], "b|a");
    sl_dataset_close(&data);
    if (sl_dataset_open_with(folder, &apart, &data) != SL_OK)
        fail_msg("%s", sl_error_message());
    assert_int_equal(data.classes, 3);
    assert_string_equal(data.meaning.class_names[2], "c");
    for (size_t k = 0; k < COUNT(several); k++)
        assert_true(isnan(several[k]) ? isnan(data.multilabels[k])
                                      : data.multilabels[k] == several[k]);
    assert_round_trip(*state, &data);
    sl_dataset_close(&data);
    static const struct good_file none[] = {{"nodes.csv", "id,label\n0,|\n1,|\n"},
                                            {"edges.csv", "0,1\n"}};
    const char *separators = format_folder(*state, "separators", none, COUNT(none));
    assert_int_equal(sl_dataset_open_with(separators, &apart, &data), SL_OK);
    assert_int_equal(data.classes, 0);
    assert_null(data.multilabels);
    sl_dataset_close(&data);
    const char *list = files_text(*state, "list.txt", "0 1\n");
    assert_int_equal(sl_dataset_open_with(list, &apart, &data), SL_ERR_USAGE);
    assert_non_null(strstr(sl_error_message(), "expected no --label-separator"));
}

/* A folder with one graph in it is that graph. */
static void test_only_file(void **state)
{
    static const struct good_file konect[] = {
        {"out.small", "% asym unweighted\n1 2\n2 3\n"},
        {"README.txt", "about\n"},
        {"meta.small", "name: small\n"},
    };
    static const struct good_file edges[] = {{"edges.csv.gz", "0,1\n1,2\n2,0\n"}};
    static const struct good_file other[] = {{"people.csv", "id,f\n0,1\n"},
                                             {"friends.csv", "0,1\n"}};
    static const struct good_file packed[] = {{"nodes.csv", "id,f\n0,1\n1,2\n"},
                                              {"edges.csv.xz", "\xFD"
                                                               "7zXZ-data"}};
    static const struct good_file foreign[] = {{"graph.json", "{}"}};
    struct sl_dataset data;
    open_ok(format_folder(*state, "konect", konect, COUNT(konect)), &data);
    assert_int_equal(data.vertices, 3);
    assert_int_equal(sl_npy_integer(&data.vertex_ids, 0), 1);
    sl_dataset_close(&data);
    open_ok(format_folder(*state, "alone", edges, COUNT(edges)), &data);
    assert_int_equal(data.vertices, 3);
    sl_dataset_close(&data);
    const char *folder = format_folder(*state, "people", other, COUNT(other));
    format_refused(folder, "people", "it has friends.csv, people.csv; expected meta.json with");
    format_refused(format_folder(*state, "packed", packed, COUNT(packed)), "edges.csv.xz",
                   "is compressed by xz");
    format_refused(format_folder(*state, "foreign", foreign, COUNT(foreign)), "graph.json",
                   "is JSON");
}

/* ---- Features in lines ---- */

static const struct good_file lines[] = {
    {"net.txt", "0 1 1\n1 0 1\n1 2 1\n2 1 1\n"},
    {"feature.txt", "0\t1:0.5 3:2\n1\n2\t0:-1e-3\n"},
    {"label.txt", "0 1\n1 0\n2 1\n"},
};

static const struct bad_file bad_lines[] = {
    {"feature.txt", "", "has no features, expected INDEX:VALUE"},
    {"feature.txt", "0\n1\n", "has no features, expected INDEX:VALUE"},
    {"feature.txt", "0 1:1\n0 2:1\n", "line 2: vertex '0' is there twice"},
    {"feature.txt", "0 1:1\n1 1\n", "line 2: '1' is no feature, expected INDEX:VALUE"},
    {"feature.txt", "0 1:1\n1 -1:1\n", "line 2: '-1:1' is no feature"},
    {"feature.txt", "0 1:1\n1 a:1\n", "line 2: 'a:1' is no feature"},
    {"feature.txt", "0 1:1\n1 2:\n", "line 2: '2:' is no feature"},
    {"feature.txt", "0 1:1\n1 2:x\n", "line 2: '2:x' is no feature"},
    {"feature.txt", "0 1:1\n1 2:nan\n", "line 2: '2:nan' is no feature"},
    {"feature.txt", "0 1:1\n1 2:inf\n", "line 2: '2:inf' is no feature"},
    {"feature.txt", "0 1:1\n1 2:1e39\n", "line 2: '2:1e39' is no feature"},
    {"feature.txt", "0 1:1\n1 2.5:1\n", "line 2: '2.5:1' is no feature"},
    {"feature.txt", "0 1:1\n1 2:1:1\n", "line 2: '2:1:1' is no feature"},
    {"feature.txt", "0 1:1\n1 99999999999:1\n", "line 2: '99999999999:1' is no feature"},
    {"feature.txt", "0 1:1\n1 2000000000:1\n", "feature 2000000000 of 2 values"},
    {"feature.txt", "0 1:1\n1 2:1 2:1\n", "line 2: feature 2 is there twice"},
    {"feature.txt", "0 1:1 2:1 1:1\n", "1 features are there twice"},
    {"feature.txt", "0,1:1\n", "has no features"},
    {"label.txt", "0 1\n3 1\n", "line 2: '3' is no vertex, expected one of "},
    {"label.txt", "0 1\n-1 1\n", "line 2: '-1' is no vertex"},
    {"label.txt", "", "is empty"},
    {"label.txt", "0 1\n1\n2 1\n", "line 2 has 1 columns, expected 2"},
    {"label.txt", "0 1\n1 0 1\n2 1\n", "line 2 has 3 columns, expected 2"},
    {"label.txt", "0 1\n0 1\n", "line 2: vertex '0' is there twice"},
    {"label.txt", "0 1\n1 -7\n2 1\n", "label -7 of vertex 1"},
    {"net.txt", "0 1 1\n1 3 1\n", "line 2: '3' is no vertex"},
    {"net.txt", "0 1 1\n-1 2 1\n", "line 2: '-1' is no vertex"},
    {"nodes.csv", "id\n0\n1\n", "feature.txt: line 3: '2' is no vertex, expected one of "},
    {"train.txt", "0\n3\n", "line 2: '3' is no vertex"},
    {"train.txt", "0\n1\n0\n", "line 3: vertex 0 is there twice"},
    {"val.txt", "0 1\n", "line 1: '0 1' is no vertex"},
    {"val.txt", "0,1\n", "line 1 has more than a vertex"},
};

static const char *make_lines(const struct files *files, const char *name)
{
    return format_folder(files, name, lines, COUNT(lines));
}

static void test_bad_lines(void **state)
{
    format_malformed(*state, "libsvm", make_lines, bad_lines, COUNT(bad_lines));
}

static void test_lines(void **state)
{
    const struct files *files = *state;
    static const int32_t labels[] = {1, 0, 1};
    struct sl_dataset data;
    const char *folder = format_folder(files, "lines", lines, COUNT(lines));
    format_file(folder, "train.txt", "train_id\n2\n0\n");
    open_ok(folder, &data);
    assert_int_equal(data.vertices, 3);
    assert_int_equal(data.features, 4);
    assert_true(format_feature(&data, 0, 1) == 0.5f && format_feature(&data, 0, 3) == 2.0f);
    assert_true(format_feature(&data, 2, 0) == -1e-3f && format_feature(&data, 1, 1) == 0.0f);
    assert_memory_equal(data.labels, labels, sizeof labels);
    assert_int_equal(data.train.count, 2);
    assert_int_equal(data.train.ids[1], 2);
    assert_null(data.vertex_ids.data);
    assert_round_trip(files, &data);
    sl_dataset_close(&data);
}

/* LIBSVM's own form: a label in front, columns from 1, vertices in order. */
static void test_libsvm(void **state)
{
    static const struct good_file svm[] = {
        {"edges.txt", "0 1\n1 2\n"},
        {"features.svm", "+1 1:0.5 4:2\n-1\n1 2:3 # a comment\n"},
    };
    static const struct good_file good[] = {
        {"edges.txt", "0 1\n1 2\n"},
        {"features.svm", "+1 1:0.5 4:2\n-1\n1 2:3\n"},
    };
    static const int32_t labels[] = {1, 0, 1};
    struct sl_dataset data;
    format_refused(format_folder(*state, "comment", svm, COUNT(svm)), "features.svm",
                   "line 3: '#' is no feature");
    open_ok(format_folder(*state, "svm", good, COUNT(good)), &data);
    assert_int_equal(data.vertices, 3);
    assert_int_equal(data.features, 4);
    assert_true(format_feature(&data, 0, 0) == 0.5f && format_feature(&data, 0, 3) == 2.0f);
    assert_true(format_feature(&data, 2, 1) == 3.0f);
    assert_memory_equal(data.labels, labels, sizeof labels);
    sl_dataset_close(&data);
}

/* ---- Real graphs ---- */

SL_TEST(test_cora)
{
    struct sl_dataset data, wanted;
    const struct sl_read_options plain = {.symmetrize = true};
    if (sl_dataset_open_with(format_shared("original/cora_libsvm_like"), &plain, &data) != SL_OK)
        fail_msg("%s", sl_error_message());
    open_ok(format_shared("cora"), &wanted);
    format_same_graph(&data, &wanted);
    format_same_features(&data, &wanted);
    int64_t known = 0; /* the file has those of the splits alone */
    for (int64_t v = 0; v < data.vertices; v++) {
        known += data.labels[v] >= 0;
        assert_true(data.labels[v] < 0 || data.labels[v] == wanted.labels[v]);
    }
    assert_int_equal(known, 1640);
    sl_dataset_close(&data);
    sl_dataset_close(&wanted);
}

/* Quoted names with commas; loops, which the directory has not. */
SL_TEST(test_facebook)
{
    struct sl_dataset data, wanted;
    const struct sl_read_options both = {.symmetrize = true};
    if (sl_dataset_open_with(format_shared("original/musae_facebook"), &both, &data) != SL_OK)
        fail_msg("%s", sl_error_message());
    open_ok(format_shared("musae_facebook"), &wanted);
    assert_int_equal(data.vertices, wanted.vertices);
    assert_int_equal(entries(&data) - sl_csr_diagonal_count(&data.adjacency), entries(&wanted));
    format_same_labels(&data, &wanted);
    for (int64_t c = 0; c < data.classes; c++)
        assert_non_null(data.meaning.class_names[c]);
    assert_string_equal(data.meaning.class_names[3], "tvshow");
    for (int64_t v = 0; v < data.vertices; v++)
        for (int64_t k = data.adjacency.indptr[v], w = wanted.adjacency.indptr[v];
             k < data.adjacency.indptr[v + 1]; k++)
            if (data.adjacency.indices[k] != v)
                assert_int_equal(data.adjacency.indices[k], wanted.adjacency.indices[w++]);
    sl_dataset_close(&data);
    sl_dataset_close(&wanted);
}

int main(void)
{
    sl_log_enable(false);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_table, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_columns, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_label_column, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_many_words, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_forms, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_bad_tables, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_missing, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_label_headers, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_several, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_only_file, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_lines, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_libsvm, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_bad_lines, files_setup, files_teardown),
        cmocka_unit_test(test_cora),
        cmocka_unit_test(test_facebook),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
