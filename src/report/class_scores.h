/* Scores of classes, from the confusion matrix of a log (train/confusion.h). */
#ifndef SL_REPORT_CLASS_SCORES_H
#define SL_REPORT_CLASS_SCORES_H

#include <jansson.h>

/* The scores of a class. NaN: the class has no vertex, or none was predicted. */
struct sl_class_scores {
    double vertices, precision, recall, f1;
};

/* Return the number of vertices of class `label` that were predicted as `predicted`. */
double sl_confusion_count(const json_t *rows, size_t label, size_t predicted);

struct sl_class_scores sl_class_scores_of(const json_t *rows, size_t label);

#endif
