"""A wheel with compiled programs inside, for any version of Python 3."""
from setuptools import Distribution, setup

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70
    from wheel.bdist_wheel import bdist_wheel


class Compiled(Distribution):
    def has_ext_modules(self):
        return True


class AnyPython(bdist_wheel):
    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(distclass=Compiled, cmdclass={"bdist_wheel": AnyPython},
      package_data={"starling": ["_wheel/**/*"]})
